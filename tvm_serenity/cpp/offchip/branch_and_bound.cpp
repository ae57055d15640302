#include <numeric>

#include "offchip/search.hpp"

namespace offchip {

BranchAndBound::BranchAndBound(const Network& network, std::int64_t slots, Bytes slot_bytes,
                               std::vector<int> incumbent, Bytes incumbent_bytes, Bytes floor)
    : network_(network),
      evaluator_(network, slots),
      slot_bytes_(slot_bytes),
      room_(slots * slot_bytes),
      floor_(floor),
      waiting_(network.ops(), 0),
      best_(std::move(incumbent)),
      touched_(network.storages(), 0),
      forced_(1, 0),
      best_bytes_(incumbent_bytes) {
  op_reads_.assign(network.ops(), 0);
  std::vector<Bytes> op_writes(network.ops(), 0);
  for (int u = 0; u < network.ops(); ++u) waiting_[u] = int(network.predecessors[u].size());
  for (int s = 0; s < network.storages(); ++s) {
    const int b = network.storage_begin[s];
    const bool filled = b < network.storage_begin[s + 1];
    storage_bytes_.push_back(network.storage_bytes(s));
    users_left_.push_back(int(network.operands[s].size()));
    const Bytes tail = filled ? network.size[network.storage_begin[s + 1] - 1] : 0;
    short_home_.push_back(filled && network.home[b] && tail < slot_bytes ? tail : 0);
    if (!filled || network.operands[s].empty() || network.home[b]) continue;
    const int maker = network.user[network.operands[s][0]];
    for (int operand : network.operands[s])
      if (network.user[operand] != maker) op_reads_[network.user[operand]] += storage_bytes_[s];
    if (network.kept[b]) compulsory_writes_ += storage_bytes_[s];
    else if (network.operands[s].size() > 1) op_writes[maker] += storage_bytes_[s];
  }
  for (Bytes& bytes : op_reads_) bytes = std::max<Bytes>(0, bytes - room_);
  for (Bytes bytes : op_writes) writes_of_ops_ += std::max<Bytes>(0, bytes - room_);
}

// What every completion of the prefix costs at the least.
Bytes BranchAndBound::bound(Bytes& forced_writes) {
  Bytes live = 0, cheap = 0, first_reads = 0, reads_of_ops = 0;
  for (int s = 0; s < network_.storages(); ++s) {
    if (touched_[s]) first_reads += short_home_[s];  // prefix_reads() leaves these out
    if (users_left_[s] == 0 || storage_bytes_[s] == 0) continue;
    const int b = network_.storage_begin[s];
    if (touched_[s]) {
      live += storage_bytes_[s];
      if (network_.home[b] || network_.kept[b]) cheap += storage_bytes_[s];
    } else if (network_.home[b]) {
      first_reads += storage_bytes_[s];
    }
  }
  for (int u = 0; u < network_.ops(); ++u)
    if (waiting_[u] >= 0) reads_of_ops += op_reads_[u];
  const Bytes excess = std::max<Bytes>(0, live - room_);
  forced_writes = std::max({forced_.back(), writes_of_ops_, excess - cheap});
  const Bytes future = first_reads + std::max(excess, reads_of_ops);
  const Bytes rest = compulsory_writes_ + forced_writes + future;
  if (rest >= best_bytes_) return rest;
  return rest + evaluator_.prefix_reads(prefix_, slot_bytes_);
}

bool BranchAndBound::extend(const Late& late) {
  if (closed()) return true;
  if ((++nodes_ & 0xff) == 0) late_ = late();
  if (late_ || evaluator_.simulated() > budget_) return false;
  if (int(prefix_.size()) == network_.ops()) {
    const Bytes bytes = evaluator_.rebase(prefix_);
    if (bytes < best_bytes_) {
      best_bytes_ = bytes;
      best_ = prefix_;
    }
    return true;
  }
  Bytes forced_writes = 0;
  if (bound(forced_writes) >= best_bytes_) return true;
  forced_.push_back(forced_writes);
  bool finished = true;
  for (int u = 0; u < network_.ops() && finished; ++u) {
    if (waiting_[u] != 0) continue;
    waiting_[u] = -1;
    prefix_.push_back(u);
    std::vector<int> first;
    const int begin = network_.operand_begin[u], end = network_.operand_begin[u + 1];
    for (int operand = begin; operand < end; ++operand) {
      const int s = network_.storage_of[operand];
      --users_left_[s];
      if (!touched_[s]) first.push_back(s);
      touched_[s] = 1;
    }
    for (int s : network_.successors[u]) --waiting_[s];
    finished = extend(late);
    for (int s : network_.successors[u]) ++waiting_[s];
    for (int operand = begin; operand < end; ++operand)
      ++users_left_[network_.storage_of[operand]];
    for (int s : first) touched_[s] = 0;
    prefix_.pop_back();
    waiting_[u] = 0;
  }
  forced_.pop_back();
  return finished;
}

bool BranchAndBound::run(std::int64_t accesses, const Late& late) {
  budget_ = evaluator_.simulated() + accesses;
  return extend(late);
}

}  // namespace offchip
