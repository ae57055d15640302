#include "offchip/simulate.hpp"

#include <algorithm>
#include <stdexcept>

#include "offchip/time_set.hpp"

namespace offchip {
namespace {

// Residents that may be evicted, keyed by what the policy compares. Keys are unique: a time in the
// trace, or for round robin a slot.
class Simulation {
 public:
  Simulation(const Trace& trace, const Bytes* room, Bytes capacity, Policy policy)
      : trace_(trace),
        room_(room),
        capacity_(capacity),
        policy_(policy),
        next_(next_accesses(trace)),
        owner_(std::max(trace.count, trace.blocks), -1),
        clean_(owner_.size() + 1),
        dirty_keys_(policy == Policy::belady_writes ? owner_.size() + 1 : 0),
        free_slots_(policy == Policy::rr ? trace.blocks : 0),
        key_(trace.blocks, 0),
        state_(trace.blocks, 0) {
    if (policy == Policy::rr)
      for (std::int64_t s = 0; s < trace.blocks; ++s) free_slots_.insert(s);
  }

  void group(std::int64_t begin, std::int64_t end, Bytes reserve) {
    for (std::int64_t i = begin; i < end; ++i) pin(trace_.block[i]);
    make_room(reserve, begin);
    for (std::int64_t i = begin; i < end; ++i) access(i, reserve);
    for (std::int64_t i = begin; i < end; ++i) release(i, end);
  }

  const Traffic& traffic() const { return traffic_; }

 private:
  enum : std::uint8_t { kResident = 1, kDirty = 2, kPinned = 4 };

  TimeSet& keys(std::int32_t block) {
    return policy_ == Policy::belady_writes && (state_[block] & kDirty) ? dirty_keys_ : clean_;
  }

  void pin(std::int32_t block) {
    if (!(state_[block] & kResident) || (state_[block] & kPinned)) return;
    keys(block).erase(key_[block]);
    state_[block] |= kPinned;
  }

  void access(std::int64_t i, Bytes reserve) {
    const std::int32_t block = trace_.block[i];
    if (!(state_[block] & kResident)) {
      (needs_content(trace_.kind[i]) ? traffic_.read : traffic_.created) += trace_.size[block];
      make_room(reserve + room_[block], i);
      used_ += room_[block];
      state_[block] = kResident | kPinned;
      if (policy_ == Policy::rr) {
        key_[block] = free_slots_.min();
        free_slots_.erase(key_[block]);
      } else {
        key_[block] = i;  // fifo keeps this one
      }
    }
    if (dirties(trace_.kind[i])) state_[block] |= kDirty;
  }

  // After a group its blocks are dropped, or become what the policy may evict.
  void release(std::int64_t i, std::int64_t end) {
    const std::int32_t block = trace_.block[i];
    if (next_[i] < end) return;  // the group accesses it again
    const After fate = after(trace_, block, next_[i]);
    if (fate != kStays) {
      if (fate == kFlushed && (state_[block] & kDirty)) traffic_.write += trace_.size[block];
      traffic_.dropped += trace_.size[block];
      leave(block);
      return;
    }
    state_[block] &= std::uint8_t(~kPinned);
    if (policy_ == Policy::belady || policy_ == Policy::belady_writes) key_[block] = next_[i];
    if (policy_ == Policy::lru) key_[block] = i;
    owner_[key_[block]] = block;
    keys(block).insert(key_[block]);
  }

  void make_room(Bytes wanted, std::int64_t now) {
    while (used_ + wanted > capacity_) {
      const std::int32_t block = victim(now);
      if (state_[block] & kDirty) traffic_.write += trace_.size[block];
      traffic_.evicted += trace_.size[block];
      keys(block).erase(key_[block]);
      leave(block);
    }
  }

  void leave(std::int32_t block) {
    used_ -= room_[block];
    if (policy_ == Policy::rr) free_slots_.insert(key_[block]);
    state_[block] = 0;
  }

  std::int32_t victim(std::int64_t now) {
    if (clean_.empty() && (policy_ != Policy::belady_writes || dirty_keys_.empty()))
      throw std::logic_error("a group of accesses needs more than the capacity");
    switch (policy_) {
      case Policy::belady: return owner_[clean_.max()];
      case Policy::belady_writes: return write_aware_victim(now);
      case Policy::rr: {
        std::int64_t slot = clean_.next(pointer_);
        if (slot < 0) slot = clean_.min();
        pointer_ = slot + 1;
        return owner_[slot];
      }
      default: return owner_[clean_.min()];
    }
  }

  // A dirty block costs a write and a read, a clean one a read: the farther next use a transfer.
  std::int32_t write_aware_victim(std::int64_t now) {
    if (clean_.empty()) return owner_[dirty_keys_.max()];
    if (dirty_keys_.empty()) return owner_[clean_.max()];
    const std::int64_t clean = clean_.max(), dirty = dirty_keys_.max();
    return owner_[2 * (clean - now) >= dirty - now ? clean : dirty];
  }

  const Trace& trace_;
  const Bytes* room_;
  const Bytes capacity_;
  const Policy policy_;
  const std::vector<std::int32_t> next_;
  std::vector<std::int32_t> owner_;  // the block that has a key
  TimeSet clean_, dirty_keys_, free_slots_;
  std::vector<std::int64_t> key_;
  std::vector<std::uint8_t> state_;
  Bytes used_ = 0;
  std::int64_t pointer_ = 0;
  Traffic traffic_;
};

}  // namespace

Traffic simulate(const Trace& trace, const Groups& groups, const Bytes* room, Bytes capacity,
                 Policy policy, const Late& late) {
  Simulation simulation(trace, room, capacity, policy);
  std::int64_t begin = 0;
  for (std::int64_t g = 0; g < groups.count; ++g) {
    if ((g & 0x3ffff) == 0x3ffff && late()) throw TooLate();
    simulation.group(begin, groups.end[g], groups.reserve[g]);
    begin = groups.end[g];
  }
  return simulation.traffic();
}

}  // namespace offchip
