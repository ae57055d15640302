// Follows an emulated program by a hook before each instruction, and prices it on several pipelines
// at once. The emulator is not linked: its functions are passed as addresses.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cycles/pipeline.hpp"

namespace cycles {

// The emulator's functions to call, and its numbers of the registers.
struct Emulator {
  int (*reg_read)(void*, int, void*);
  int (*stop)(void*);
  void* engine;
  std::vector<int> registers;
};

// The cost of one call of an operator.
struct Segment {
  u32 entry;
  u64 instructions;
  std::vector<u64> cycles;  // by pipeline
};

class Driver {
 public:
  using Decode = std::function<bool(u32, Row&)>;

  Driver(std::vector<Pipeline> pipelines, Decode decode, u64 limit)
      : pipelines_(std::move(pipelines)), decode_(std::move(decode)), limit_(limit) {}

  void follow(const Emulator& emulator, u32 pc) {
    emulator_ = emulator;
    for (Pipeline& pipeline : pipelines_) pipeline.start(pc);
  }

  static void hook(void*, u64 address, u32, void* self) {
    static_cast<Driver*>(self)->before(u32(address));
  }

  // The last instruction has run, and `pc` would follow.
  void finish(u32 pc) {
    end_last(pc);
    last_ = nullptr;
  }

  const std::vector<Pipeline>& pipelines() const { return pipelines_; }
  const std::vector<Segment>& segments() const { return segments_; }
  u64 instructions() const { return instructions_; }
  u64 taken() const { return taken_; }
  u64 skipped() const { return skipped_; }
  bool at_limit() const { return at_limit_; }
  bool failed() const { return failed_; }
  const std::vector<u64>& loads() const { return loads_; }
  const std::vector<u64>& stores() const { return stores_; }

  struct Here {
    Row row;
    u64 count = 0;
    u64 cycles = 0;  // of the last pipeline
  };
  const std::unordered_map<u32, std::unique_ptr<Here>>& rows() const { return rows_; }

 private:
  // Decoded instructions by address; a small direct table in front of the map.
  Here* row_of(u32 pc) {
    Here*& slot = quick_[(pc >> 1) & (kQuick - 1)];
    u32& tag = quick_pc_[(pc >> 1) & (kQuick - 1)];
    if (slot && tag == pc) return slot;
    std::unique_ptr<Here>& found = rows_[pc];
    if (!found) {
      auto made = std::make_unique<Here>();
      if (failed_ || !decode_(pc, made->row)) {
        failed_ = true;
        emulator_.stop(emulator_.engine);
        rows_.erase(pc);
        return nullptr;
      }
      found = std::move(made);
    }
    slot = found.get();
    tag = pc;
    return slot;
  }

  u32 value(u8 number) {
    u32 found = 0;
    emulator_.reg_read(emulator_.engine, emulator_.registers[number], &found);
    return found;
  }

  void before(u32 pc) {
    if (failed_) return;
    end_last(pc);
    Here* const here = row_of(pc);
    if (!here) {
      last_ = nullptr;
      return;
    }
    last_ = here;
    last_pc_ = pc;
    const Row& row = here->row;
    if (open_ && pc == returns_to_) close_segment();
    if (!open_ && row.is(kEntry)) open_segment(pc);
    accesses_.clear();
    if (row.bytes) note_accesses(pc, row);
    divided_ = row.is(kDivides) ? quotient_cycles(row) : 0;
    if (instructions_ >= limit_) {
      at_limit_ = true;
      emulator_.stop(emulator_.engine);
    }
  }

  void note_accesses(u32 pc, const Row& row) {
    u32 address = 0;
    if (row.base != kNoRegister) address = row.base == kPc ? (pc + 4) & ~3u : value(row.base);
    if (row.index != kNoRegister) address += value(row.index) << row.shift;
    address += u32(row.displacement);
    const bool store = row.is(kStores);
    const int m = pipelines_[0].memories().find(address);
    std::vector<u64>& counts = store ? stores_ : loads_;
    if (counts.empty()) counts.assign(pipelines_[0].memories().memories.size() + 1, 0);
    counts[m < 0 ? counts.size() - 1 : std::size_t(m)] += row.count;
    for (u32 k = 0; k < row.count; ++k) accesses_.push_back({address + 4 * k, row.bytes, store});
  }

  // Between the least and the most cycles by the bits of the quotient.
  u32 quotient_cycles(const Row& row) {
    const u32 n = value(row.base), d = value(row.index);
    const auto bits = [&](u32 x) {
      if (row.is(kStores)) x = int(x) < 0 ? 0u - x : x;  // signed
      u32 b = 0;
      for (; x; x >>= 1) ++b;
      return b;
    };
    const u32 of_n = bits(n), of_d = bits(d);
    const u32 quotient = !of_d || of_n < of_d ? 0 : of_n - of_d + 1;
    return row.cycles + (u32(row.most - row.cycles) * quotient + 31) / 32;
  }

  void end_last(u32 next) {
    if (!last_) return;
    const Row& row = last_->row;
    u32 follows = last_pc_ + row.size;
    // A condition that fails is no call of the hook: the next address is a little further on.
    const bool skips = next != follows && !row.branches() && next > follows && next - follows <= 16;
    price(*last_, last_pc_, skips ? follows : next, accesses_, divided_);
    if (next != follows && !skips) ++taken_;
    while (skips && follows < next) {
      Here* const skipped = row_of(follows);
      if (!skipped) return;
      Row nothing;
      nothing.size = skipped->row.size;
      static const std::vector<Access> none;
      last_ = skipped;
      ++skipped_;
      price_row(*skipped, nothing, follows, follows + nothing.size, none, 0);
      follows += nothing.size;
    }
  }

  void price(Here& here, u32 pc, u32 next, const std::vector<Access>& accesses, u32 divided) {
    price_row(here, here.row, pc, next, accesses, divided);
  }

  void price_row(Here& here, const Row& row, u32 pc, u32 next, const std::vector<Access>& accesses,
                 u32 divided) {
    ++instructions_;
    ++here.count;
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      const u64 before = pipelines_[p].now();
      pipelines_[p].step(pc, row, next, accesses, divided);
      if (p + 1 == pipelines_.size()) here.cycles += pipelines_[p].now() - before;
    }
  }

  void open_segment(u32 pc) {
    open_ = true;
    returns_to_ = value(kLink) & ~1u;
    Segment segment{pc, instructions_, {}};
    for (const Pipeline& pipeline : pipelines_) segment.cycles.push_back(pipeline.now());
    segments_.push_back(segment);
  }

  void close_segment() {
    open_ = false;
    Segment& segment = segments_.back();
    segment.instructions = instructions_ - segment.instructions;
    for (std::size_t p = 0; p < pipelines_.size(); ++p)
      segment.cycles[p] = pipelines_[p].now() - segment.cycles[p];
  }

  static constexpr std::size_t kQuick = 1 << 16;

  std::vector<Pipeline> pipelines_;
  Decode decode_;
  u64 limit_;
  Emulator emulator_{};
  std::unordered_map<u32, std::unique_ptr<Here>> rows_;
  std::vector<Here*> quick_ = std::vector<Here*>(kQuick, nullptr);
  std::vector<u32> quick_pc_ = std::vector<u32>(kQuick, 0);
  std::vector<Segment> segments_;
  std::vector<Access> accesses_;
  std::vector<u64> loads_, stores_;
  Here* last_ = nullptr;
  u32 last_pc_ = 0, divided_ = 0, returns_to_ = 0;
  u64 instructions_ = 0, taken_ = 0, skipped_ = 0;
  bool open_ = false, at_limit_ = false, failed_ = false;
};

}  // namespace cycles
