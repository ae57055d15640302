#include "cycles/pipeline.hpp"

namespace cycles {

namespace {

constexpr u32 kRegisters = ~(1u << kPc);  // pc is never waited for

// Calls `visit` with the number of each bit that is set, from the lowest.
template <class Visit>
inline void for_each_bit(u32 mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(u32(__builtin_ctz(mask)));
}

}  // namespace

// Costs as the manuals of the Cortex-M3 and M4 tell them: cycles of each instruction, and what a
// neighbour takes off or adds.
void Pipeline::step_costs(u32 pc, const Row& row, u32 next, const std::vector<Access>& accesses,
                           u32 divided) {
  u64 now = now_;
  const u64 there = arrival(pc, row.size);
  if (there > now) {
    stall_for_fetch(pc, there - now);
    now = there;
    after_load_ = false;
  }
  pending_ = 0;
  const u64 begun = now;
  const u64 stalls = data_stalls(accesses, now);
  u64 cost = row.cycles, hazard = 0;
  const bool single_load = (row.kind == kLoad || row.kind == kFloatLoad) && row.count == 1;
  const bool overlaps = after_load_ && !(loaded_ & row.address);
  u32 computed = 0;
  switch (row.kind) {
    case kLoad:
    case kFloatLoad:
    case kStoreIndexed:
    case kFloatStore:
      if (row.count == 1 && overlaps) cost -= std::min<u64>(cost - 1, core_.load_overlap);
      break;
    case kLoadMany:
    case kStoreMany:
      break;
    case kDivide:
      cost = divided;
      break;
    case kIt:
      if (core_.folds_it && after_short_) cost = 0;
      break;
    case kAlu:
      computed = row.written;
      break;
    default:
      break;
  }
  if (row.count > 1) cost += (row.count - 1 + core_.transfers) / core_.transfers - 1;
  if (row.address && (computed_ & row.address)) hazard += core_.address_hazard;
  if (row.is(kIsFloat) && (late_ & row.float_read)) hazard += core_.float_hazard;
  late_ = row.is(kLate) ? row.float_written : 0;
  spent_.core += cost + hazard;
  now += cost + hazard + stalls;
  after_load_ = single_load && !row.is(kWritesPc);
  loaded_ = after_load_ ? row.written : 0;
  computed_ = computed;
  after_short_ = row.size == 2;
  consume(pc, row.size, begun);
  if (next != pc + row.size) {
    redirect(next, now, row.kind == kBranch ? refill_.direct : refill_.indirect);
    after_load_ = false;
    computed_ = 0;
  }
  now_ = now;
}

u64 Pipeline::sources_ready(const Row& row) const {
  u64 at = 0;
  // addresses are needed a stage before the operands of the ALU
  for_each_bit(row.address & kRegisters,
               [&](u32 r) { at = std::max(at, ready_[r] + core_.address_hazard); });
  // what is stored is needed a stage later
  const u64 later = row.is(kStores);
  for_each_bit(row.read & kRegisters,
               [&](u32 r) { at = std::max(at, ready_[r] - (later && ready_[r] > 0)); });
  for_each_bit(row.float_read, [&](u32 f) { at = std::max(at, float_ready_[f]); });
  return at;
}

void Pipeline::publish(const Row& row, u64 issue, u64 latency) {
  const u64 made = issue + latency, updated = issue + 1 - core_.address_hazard;
  for_each_bit(row.written & kRegisters, [&](u32 r) { ready_[r] = made; });
  if (row.is(kWritesBack))
    for_each_bit(row.address & kRegisters, [&](u32 r) { ready_[r] = updated; });
  for_each_bit(row.float_written, [&](u32 f) { float_ready_[f] = made; });
}

bool Pipeline::mispredicted(u32 pc, const Row& row, u32 next, bool taken) {
  bool guessed = false;
  if (row.kind == kBranch && core_.last_backward) {
    guessed = predicted_ == pc;
    if (taken && next < pc) predicted_ = pc;
    if (guessed && !taken) predicted_ = 0;
  } else if (row.kind == kBranch && !predictor_.empty()) {
    u8& counter = predictor_[(pc >> 1) % predictor_.size()];
    guessed = counter >= 2;
    if (taken && counter < 3) ++counter;
    if (!taken && counter > 0) --counter;
  }
  return guessed != taken;
}

// One or two a cycle, in order: a second joins the first where its operands are ready, its unit is
// free, and neither must be issued alone.
void Pipeline::step_latencies(u32 pc, const Row& row, u32 next, const std::vector<Access>& accesses,
                         u32 divided) {
  const u64 before = now_;
  const u64 next_free = now_ + (core_.width == 1 && issued_);
  u64 at = std::max(next_free, sources_ready(row));
  const u64 there = arrival(pc, row.size);
  const u64 starved = there > at ? there - at : 0;
  if (starved) stall_for_fetch(pc, starved);
  at += starved;
  pending_ = 0;
  const u32 limit = row.kind == kLoad ? core_.loads : row.kind == kAlu || row.kind == kIt ? 2 : 1;
  const bool joins = at == now_ && issued_ && issued_ < 2 && !alone_ && !row.is(kAlone) &&
                     used_[row.kind] < limit;
  if (!joins) {
    if (at == now_ && issued_) ++at;
    issued_ = 0;
    used_.fill(0);
    alone_ = row.is(kAlone);
  }
  ++issued_;
  ++used_[row.kind];
  u64 occupied = row.kind == kDivide ? divided : row.cycles;
  if (row.count > 1) occupied += (row.count - 1 + core_.transfers) / core_.transfers - 1;
  const u64 stalls = data_stalls(accesses, at);
  publish(row, at + stalls, row.kind == kDivide ? divided : row.latency);
  consume(pc, row.size, at);
  const u64 end = at + stalls + occupied - 1;
  spent_.core += end - before - stalls - std::min<u64>(starved, end - before - stalls);
  now_ = end;
  if (end != at) issued_ = 2;  // nothing joins an instruction that took longer
  last_done_ = now_ + 1;
  const bool taken = next != pc + row.size;
  if (taken || row.kind == kBranch) {
    const bool wrong = mispredicted(pc, row, next, taken);
    if (wrong && !taken) {
      now_ += refill_.direct;
      spent_.branches += refill_.direct;
      issued_ = core_.width == 1;  // a single issue had its own cycle
    }
    if (taken) {
      const u32 lost = row.kind == kBranch ? refill_.direct : refill_.indirect;
      redirect(next, now_ + (wrong && lost), wrong ? lost : 0);
      issued_ = 2;
    }
  }
}

}  // namespace cycles
