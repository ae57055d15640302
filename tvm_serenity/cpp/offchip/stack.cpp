#include "offchip/stack.hpp"

#include <algorithm>

#include "offchip/time_set.hpp"

namespace offchip {
namespace {

// Bytes by capacity where something happens for a range of capacities at a time.
class Ranges {
 public:
  explicit Ranges(std::size_t capacities) : change_(capacities + 1, 0) {}
  void add(std::size_t from, std::size_t to, Bytes bytes) {
    change_[from] += bytes;
    change_[to] -= bytes;
  }
  Bytes total(std::size_t capacity) const {
    Bytes sum = 0;
    for (std::size_t c = 0; c <= capacity; ++c) sum += change_[c];
    return sum;
  }

 private:
  std::vector<Bytes> change_;
};

struct Totals {
  explicit Totals(std::size_t capacities)
      : read(capacities), write(capacities), evicted(capacities) {}

  std::vector<Traffic> answers(std::size_t capacities) const {
    std::vector<Traffic> result(capacities);
    for (std::size_t c = 0; c < capacities; ++c)
      result[c] = {read.total(c), write.total(c), created, evicted.total(c), dropped};
    return result;
  }

  Ranges read, write, evicted;
  Bytes created = 0, dropped = 0;
};

// The stack cut at the capacities: band k holds what cache k has and cache k - 1 has not, the last
// band what none has. `from` is the first cache in which a block is dirty.
class MinStack {
 public:
  MinStack(const Trace& trace, const std::vector<std::int64_t>& slots)
      : trace_(trace),
        capacities_(slots.size()),
        next_(next_accesses(trace)),
        free_(slots),
        bands_(slots.size(), TimeSet(trace.count + 1)),
        band_(trace.blocks, kNowhere),
        dirty_from_(trace.blocks, std::uint16_t(slots.size())),
        totals_(slots.size()) {
    for (std::size_t k = capacities_; k-- > 1;) free_[k] -= free_[k - 1];
  }

  void access(std::int64_t i) {
    const std::int32_t block = trace_.block[i];
    const std::uint16_t found = band_[block];
    const Bytes size = trace_.size[block];
    if (found == kNowhere) {  // new, or read for the first time: in every cache
      if (needs_content(trace_.kind[i])) totals_.read.add(0, capacities_, size);
      else totals_.created += size;
      dirty_from_[block] = std::uint16_t(capacities_);
    } else {
      totals_.read.add(0, found, size);
      if (found < capacities_) {
        bands_[found].erase(i);
        ++free_[found];
      }
    }
    if (found != 0) push_down();
    --free_[0];
    if (dirties(trace_.kind[i])) dirty_from_[block] = 0;
    settle(i, block, size);
  }

  std::vector<Traffic> answers() const { return totals_.answers(capacities_); }

 private:
  static constexpr std::uint16_t kNowhere = 0xffff;

  // Makes a free slot in band 0: each full cache evicts its farthest block to the next band.
  void push_down() {
    std::size_t k = 0;
    std::int64_t carried = -1;
    for (; k < capacities_ && free_[k] == 0; ++k) {
      if (carried < 0 || (!bands_[k].empty() && bands_[k].max() > carried)) {
        const std::int64_t farthest = bands_[k].max();
        bands_[k].erase(farthest);
        if (carried >= 0) {
          bands_[k].insert(carried);
          band_[trace_.block[carried]] = std::uint16_t(k);
        }
        carried = farthest;
      }
      evict(trace_.block[carried], k);
    }
    if (carried < 0) return;
    band_[trace_.block[carried]] = std::uint16_t(k);
    if (k < capacities_) {
      bands_[k].insert(carried);
      --free_[k];
    }
    ++free_[0];
  }

  void evict(std::int32_t block, std::size_t cache) {
    const Bytes size = trace_.size[block];
    totals_.evicted.add(cache, cache + 1, size);
    if (dirty_from_[block] <= cache) {
      totals_.write.add(cache, cache + 1, size);
      dirty_from_[block] = std::uint16_t(cache + 1);
    }
  }

  void settle(std::int64_t i, std::int32_t block, Bytes size) {
    const After fate = after(trace_, block, next_[i]);
    if (fate == kStays) {
      bands_[0].insert(next_[i]);
      band_[block] = 0;
      return;
    }
    if (fate == kFlushed) totals_.write.add(dirty_from_[block], capacities_, size);
    totals_.dropped += size;
    band_[block] = kNowhere;
    ++free_[0];
  }

  const Trace& trace_;
  const std::size_t capacities_;
  const std::vector<std::int32_t> next_;
  std::vector<std::int64_t> free_;
  std::vector<TimeSet> bands_;  // by next access; the block is that access's
  std::vector<std::uint16_t> band_, dirty_from_;
  Totals totals_;
};

// Cells of the stack by the time they were last on top, a bit each, counted from any time on.
class Cells {
 public:
  explicit Cells(std::int64_t times) : bits_(times / 64 + 1, 0), sums_(bits_.size() + 1, 0) {}

  void insert(std::int64_t time) { change(time, 1); }
  void erase(std::int64_t time) { change(time, -1); }

  std::int64_t from(std::int64_t time) const {
    std::int64_t below = 0;
    for (std::int64_t w = time >> 6; w > 0; w &= w - 1) below += sums_[w];
    below += __builtin_popcountll(bits_[time >> 6] & ((std::uint64_t(1) << (time & 63)) - 1));
    return total_ - below;
  }

 private:
  void change(std::int64_t time, int by) {
    bits_[time >> 6] ^= std::uint64_t(1) << (time & 63);
    total_ += by;
    for (std::int64_t w = (time >> 6) + 1; w < std::int64_t(sums_.size()); w += w & -w)
      sums_[w] += by;
  }

  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> sums_;
  std::int64_t total_ = 0;
};

class LruStack {
 public:
  LruStack(const Trace& trace, const std::vector<std::int64_t>& slots)
      : trace_(trace),
        slots_(slots),
        capacities_(slots.size()),
        next_(next_accesses(trace)),
        cells_(trace.count),
        holes_(trace.count + 1),
        time_(trace.blocks, -1),
        dirty_from_(trace.blocks, std::uint16_t(slots.size())),
        totals_(slots.size()) {}

  void access(std::int64_t i) {
    const std::int32_t block = trace_.block[i];
    const Bytes size = trace_.size[block];
    const std::int64_t old = time_[block];
    if (old < 0) {
      if (needs_content(trace_.kind[i])) totals_.read.add(0, capacities_, size);
      else totals_.created += size;
      dirty_from_[block] = std::uint16_t(capacities_);
      fill_hole(-1);
    } else {
      missed(block, size, depth_class(cells_.from(old)));
      if (fill_hole(old)) holes_.insert(old);
      else cells_.erase(old);
    }
    cells_.insert(i);
    time_[block] = i;
    if (dirties(trace_.kind[i])) dirty_from_[block] = 0;
    settle(i, block, size);
  }

  std::vector<Traffic> answers() const { return totals_.answers(capacities_); }

 private:
  // The number of caches that are too small for a block at this depth.
  std::uint16_t depth_class(std::int64_t depth) const {
    return std::uint16_t(std::lower_bound(slots_.begin(), slots_.end(), depth) - slots_.begin());
  }

  // Caches 0 to below `missing` have evicted the block since its last access.
  void missed(std::int32_t block, Bytes size, std::uint16_t missing) {
    totals_.read.add(0, missing, size);
    totals_.evicted.add(0, missing, size);
    if (dirty_from_[block] < missing) {
      totals_.write.add(dirty_from_[block], missing, size);
      dirty_from_[block] = missing;
    }
  }

  // Takes the hole nearest to the top if it is above the cell of time `old`.
  bool fill_hole(std::int64_t old) {
    if (holes_.empty()) return false;
    const std::int64_t hole = holes_.max();
    if (hole < old) return false;
    holes_.erase(hole);
    cells_.erase(hole);
    return true;
  }

  void settle(std::int64_t i, std::int32_t block, Bytes size) {
    const After fate = after(trace_, block, next_[i]);
    if (fate == kStays) return;
    if (fate == kFlushed) totals_.write.add(dirty_from_[block], capacities_, size);
    totals_.dropped += size;
    time_[block] = -1;
    holes_.insert(i);
  }

  const Trace& trace_;
  const std::vector<std::int64_t>& slots_;
  const std::size_t capacities_;
  const std::vector<std::int32_t> next_;
  Cells cells_;
  TimeSet holes_;
  std::vector<std::int64_t> time_;
  std::vector<std::uint16_t> dirty_from_;
  Totals totals_;
};

template <class Stack>
std::vector<Traffic> run(const Trace& trace, const std::vector<std::int64_t>& slots,
                         const Late& late) {
  Stack stack(trace, slots);
  for (std::int64_t i = 0; i < trace.count; ++i) {
    if ((i & 0x3ffff) == 0x3ffff && late()) throw TooLate();
    stack.access(i);
  }
  return stack.answers();
}

}  // namespace

std::vector<Traffic> sweep_min(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late) {
  return run<MinStack>(trace, slots, late);
}

std::vector<Traffic> sweep_lru(const Trace& trace, const std::vector<std::int64_t>& slots,
                               const Late& late) {
  return run<LruStack>(trace, slots, late);
}

}  // namespace offchip
