// A network as the order search sees it: what each op accesses does not depend on the order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "offchip/trace.hpp"

namespace offchip {

// Op u's accesses are `block[op_begin[u]]` to before `op_begin[u + 1]`; storage s has the blocks
// `storage_begin[s]` to before `storage_begin[s + 1]`. Blocks are made before they are read.
struct Network {
  std::vector<std::int64_t> op_begin;
  std::vector<std::int32_t> block;
  std::vector<std::uint8_t> kind;
  std::vector<std::int32_t> storage_begin;
  std::vector<Bytes> size;
  std::vector<std::uint8_t> kept, home;
  std::vector<std::vector<int>> predecessors;

  int ops() const { return int(op_begin.size()) - 1; }
  int blocks() const { return int(size.size()); }
  int storages() const { return int(storage_begin.size()) - 1; }
  std::int64_t accesses() const { return op_begin.back(); }
  Bytes storage_bytes(int s) const {
    Bytes sum = 0;
    for (int b = storage_begin[s]; b < storage_begin[s + 1]; ++b) sum += size[b];
    return sum;
  }

  // Derived by finish().
  struct Operand {
    int storage;
    std::vector<std::int32_t> first;  // the rank in the op of each block's first access, or -1
  };
  std::vector<std::vector<Operand>> operands;  // of each op
  std::vector<std::vector<std::pair<int, int>>> users;  // of each storage: (op, operand)
  std::vector<std::uint16_t> operand_of;                // of each access
  std::vector<std::int32_t> again;                      // rank of the next access in the op, or -1
  std::vector<std::vector<int>> successors;

  void finish() {
    std::vector<int> storage_of(blocks());
    for (int s = 0; s < storages(); ++s)
      std::fill(storage_of.begin() + storage_begin[s], storage_of.begin() + storage_begin[s + 1], s);
    operands.resize(ops());
    users.resize(storages());
    operand_of.resize(accesses());
    again.assign(accesses(), -1);
    successors.resize(ops());
    std::vector<int> at(storages(), -1);
    std::vector<std::int64_t> last(blocks(), -1);
    for (int u = 0; u < ops(); ++u) {
      for (int p : predecessors[u]) successors[p].push_back(u);
      for (std::int64_t a = op_begin[u]; a < op_begin[u + 1]; ++a) {
        const int b = block[a], s = storage_of[b], rank = int(a - op_begin[u]);
        if (at[s] < 0) {
          at[s] = int(operands[u].size());
          users[s].emplace_back(u, at[s]);
          operands[u].push_back(
              {s, std::vector<std::int32_t>(storage_begin[s + 1] - storage_begin[s], -1)});
        }
        operand_of[a] = std::uint16_t(at[s]);
        std::int32_t& first = operands[u][at[s]].first[b - storage_begin[s]];
        if (first < 0) first = rank;
        else again[last[b]] = rank;
        last[b] = a;
      }
      for (const Operand& operand : operands[u]) at[operand.storage] = -1;
    }
  }
};

}  // namespace offchip
