// The network of the order search: the accesses of each op do not depend on the order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lists.hpp"
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
  Lists predecessors;

  int ops() const { return int(op_begin.size()) - 1; }
  int blocks() const { return int(size.size()); }
  int storages() const { return int(storage_begin.size()) - 1; }
  std::int64_t accesses() const { return op_begin.back(); }
  Bytes storage_bytes(int s) const {
    Bytes sum = 0;
    for (int b = storage_begin[s]; b < storage_begin[s + 1]; ++b) sum += size[b];
    return sum;
  }

  // Derived by finish(). An operand is a storage that an op accesses; numbered op by op.
  std::vector<int> operand_begin;         // of each op
  std::vector<int> storage_of, user;      // of each operand: its storage and its op
  std::vector<std::int64_t> first_begin;  // of each operand
  std::vector<std::int32_t> first;  // the rank in the op of each block's first access, or -1
  Lists operands;                   // of each storage, ascending
  std::vector<int> operand_of;      // of each access
  std::vector<std::int32_t> again;  // rank of the next access in the op, or -1
  Lists successors;

  // The rank in its op of the first access of an operand to one of its blocks.
  std::int32_t first_access(int operand, int block_of_storage) const {
    return first[first_begin[operand] + block_of_storage];
  }

  void finish(const Late& late) {
    std::vector<int> home_of(blocks());
    for (int s = 0; s < storages(); ++s)
      std::fill(home_of.begin() + storage_begin[s], home_of.begin() + storage_begin[s + 1], s);
    operand_of.resize(accesses());
    again.assign(accesses(), -1);
    std::vector<int> at(storages(), -1);
    std::vector<std::int64_t> last(blocks(), -1);
    Lists storages_of;
    for (int u = 0; u < ops(); ++u) {
      if ((u & 0xffff) == 0) late();  // throws where Ctrl-C comes
      operand_begin.push_back(int(user.size()));
      for (std::int64_t a = op_begin[u]; a < op_begin[u + 1]; ++a) {
        const int b = block[a], s = home_of[b], rank = int(a - op_begin[u]);
        if (at[s] < operand_begin[u]) {
          at[s] = int(user.size());
          user.push_back(u), storage_of.push_back(s);
          storages_of.add(s), storages_of.close();
          first_begin.push_back(std::int64_t(first.size()));
          first.resize(first.size() + storage_begin[s + 1] - storage_begin[s], -1);
        }
        operand_of[a] = at[s];
        std::int32_t& found = first[first_begin[at[s]] + b - storage_begin[s]];
        if (found < 0) found = rank;
        else again[last[b]] = rank;
        last[b] = a;
      }
    }
    operand_begin.push_back(int(user.size()));
    operands = storages_of.turned(storages());
    successors = predecessors.turned(ops());
  }
};

}  // namespace offchip
