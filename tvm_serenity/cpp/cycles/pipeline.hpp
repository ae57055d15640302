// The cycles of an instruction on an in-order core: by the costs of neighbours, or by the latencies of
// results, with one or two per cycle.
#pragma once

#include <array>
#include <vector>

#include "cycles/memory.hpp"

namespace cycles {

// In the order of tvm_serenity.cycles.core.PIPELINE.
struct Core {
  u32 width;                // instructions per cycle that wait for results; 0: costs of neighbours
  u32 fetch_bytes, fetch_words;  // a fetch's, and how many are held ahead
  u32 load_overlap;         // cycles less for a load or store after an independent load
  u32 address_hazard;       // cycles more for an address from the instruction before
  u32 float_hazard;         // cycles more for a float from the instruction before
  bool folds_it;            // IT after a 16-bit instruction takes nothing
  u32 misaligned_half, misaligned_byte;  // cycles more for a word so aligned, or a half
  u32 transfers;            // registers a cycle of loads and stores of several
  u32 loads;                // loads a cycle
  u32 predictor;            // entries of the branch predictor, 0: none
  bool last_backward;       // predicts the last taken backward branch alone
};

// Cycles after a taken branch until the target's fetch: of direct branches, and of others.
struct Refill {
  u32 direct, indirect;
};

// Where the cycles went.
struct Spent {
  u64 branches = 0, core = 0;
  std::vector<u64> fetch, data;  // stalls by memory, the last for what is in none
};

class Pipeline {
 public:
  Pipeline(const Core& core, const Memories& memories, const Refill& refill)
      : core_(core), refill_(refill), memories_(memories) {
    for (Cache& cache : memories_.caches) cache.reset();
    spent_.fetch.assign(memories.memories.size() + 1, 0);
    spent_.data = spent_.fetch;
    predictor_.assign(core.predictor, 1);
  }

  void start(u32 pc) { fetched_ = consumed_ = pc / core_.fetch_bytes; }

  u64 now() const { return core_.width ? std::max(now_, last_done_) : now_; }
  const Spent& spent() const { return spent_; }
  const Memories& memories() const { return memories_; }

  // The instruction at `pc` runs and `next` follows; `skipped`: its condition failed.
  void step(u32 pc, const Row& row, u32 next, const std::vector<Access>& accesses, u32 divided) {
    if (core_.width)
      step_latencies(pc, row, next, accesses, divided);
    else
      step_costs(pc, row, next, accesses, divided);
  }

 private:
  static constexpr u32 kRing = 8;

  u64 word_at(u32 word) { return done_[word % kRing]; }

  void fetch_one(u64 not_before) {
    const u64 start = std::max({fetch_free_, freed_[fetched_ % kRing], not_before});
    done_[fetched_ % kRing] = memories_.fetch(fetched_ * core_.fetch_bytes, start);
    fetch_free_ = done_[fetched_ % kRing];
    ++fetched_;
  }

  // Return when the words of the instruction at `pc` have arrived.
  u64 arrival(u32 pc, u32 size) {
    const u32 first = pc / core_.fetch_bytes, last = (pc + size - 1) / core_.fetch_bytes;
    while (fetched_ <= last) fetch_one(0);
    crosses_ = first != last;
    return std::max(word_at(first), word_at(last));
  }

  void stall_for_fetch(u32 pc, u64 cycles) {
    const u64 branch = std::min<u64>(cycles, pending_ ? pending_ + crosses_ : 0);
    spent_.branches += branch;
    spent_.fetch[slot(pc)] += cycles - branch;
  }

  std::size_t slot(u32 address) const {
    const int m = memories_.find(address);
    return m < 0 ? memories_.memories.size() : std::size_t(m);
  }

  void consume(u32 pc, u32 size, u64 when) {
    const u32 end = (pc + size) / core_.fetch_bytes;
    for (; consumed_ < end; ++consumed_) freed_[(consumed_ + core_.fetch_words) % kRing] = when;
  }

  // The fetcher ran on until now; it begins anew at `next`, `refill` cycles from now.
  void redirect(u32 next, u64 now, u32 refill) {
    while (fetched_ < consumed_ + core_.fetch_words) {
      if (std::max(fetch_free_, freed_[fetched_ % kRing]) >= now) break;
      fetch_one(0);
    }
    fetch_free_ = now + refill - (refill > 0);
    fetched_ = consumed_ = next / core_.fetch_bytes;
    freed_.fill(0);
    pending_ = refill;
  }

  u64 data_stalls(const std::vector<Access>& accesses, u64 now) {
    u64 stalls = 0;
    for (const Access& access : accesses) {
      const u32 off = access.address % (access.bytes ? access.bytes : 1);
      if (off) {
        const u32 more = off % 2 && access.bytes == 4 ? core_.misaligned_byte : core_.misaligned_half;
        stalls += more;
        spent_.core += more;
      }
      if (access.store) {
        memories_.store(access.address, now + stalls);
        continue;
      }
      const u64 waited = memories_.load(access.address, now + stalls);
      spent_.data[slot(access.address)] += waited;
      stalls += waited;
    }
    return stalls;
  }

  void step_costs(u32, const Row&, u32, const std::vector<Access>&, u32);
  void step_latencies(u32, const Row&, u32, const std::vector<Access>&, u32);
  u64 sources_ready(const Row& row) const;
  void publish(const Row& row, u64 issue, u64 latency);
  bool mispredicted(u32 pc, const Row& row, u32 next, bool taken);

  Core core_;
  Refill refill_;
  Memories memories_;
  Spent spent_;
  u64 now_ = 0, fetch_free_ = 0, pending_ = 0, last_done_ = 0;
  std::array<u64, kRing> done_{}, freed_{};
  u32 fetched_ = 0, consumed_ = 0;
  bool crosses_ = false;
  // what the instruction before left
  bool after_load_ = false, after_short_ = false;
  u32 loaded_ = 0, computed_ = 0;
  u32 late_ = 0;
  // when results are there, and what this cycle issued
  std::array<u64, 32> ready_{};
  std::array<u64, 32> float_ready_{};
  u64 flags_ready_ = 0;
  u32 issued_ = 0;
  std::array<u8, 16> used_{};
  bool alone_ = false;
  std::vector<u8> predictor_;
  u32 predicted_ = 0;
};

}  // namespace cycles
