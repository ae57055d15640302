// Memories with wait states, read buffers, prefetch, caches and shared ports.
#pragma once

#include <algorithm>
#include <vector>

#include "cycles/row.hpp"

namespace cycles {

// A cache whose lines are filled by sectors; the least recently used line is evicted.
class Cache {
 public:
  u32 line_bytes, sector_bytes, sets, ways;
  u64 misses = 0, hits = 0;

  Cache(u32 line, u32 sector, u32 set_count, u32 way_count)
      : line_bytes(line), sector_bytes(sector), sets(set_count), ways(way_count) {}

  void reset() {
    lines.assign(std::size_t(sets) * ways, Line{});
    misses = hits = tick = 0;
    last_ = 0;
  }
  // Whether `address` is held; a sector that is not is taken in where `fill` says so.
  bool look(u32 address, bool fill) {
    const u32 tag = address / line_bytes, sector = address % line_bytes / sector_bytes;
    Line* const set = &lines[std::size_t(tag % sets) * ways];
    ++tick;
    if (Line& line = lines[last_]; line.valid && line.tag == tag) {
      line.used = tick;
      return held(line, sector, fill);
    }
    Line* oldest = set;
    for (Line* line = set; line != set + ways; ++line) {
      if (line->valid && line->tag == tag) {
        line->used = tick;
        last_ = std::size_t(line - lines.data());
        return held(*line, sector, fill);
      }
      if (line->used < oldest->used) oldest = line;
    }
    if (fill) *oldest = Line{tag, u64(1) << sector, tick};
    return false;
  }

 private:
  struct Line {
    u32 tag = 0;
    u64 valid = 0, used = 0;
  };

  static bool held(Line& line, u32 sector, bool fill) {
    const bool found = line.valid >> sector & 1;
    if (fill) line.valid |= u64(1) << sector;
    return found;
  }

  std::vector<Line> lines;
  std::size_t last_ = 0;  // the line that was found last: a shortcut, the tag decides
  u64 tick = 0;
};

constexpr u64 kNone = ~u64(0);

// A stretch of addresses. Times are in cycles of the core.
struct Memory {
  u32 first, last;          // addresses, both inclusive
  u32 read_bytes;           // what one read brings
  u32 read_cycles;          // until it has arrived, 1 without waits
  u32 burst_cycles;         // between two reads of one fill
  bool prefetches;          // the next read after an instruction's
  int instruction_cache, data_cache, port;  // -1: none
  bool store_fills;         // stores take their line into the data cache

  u64 buffered[2] = {kNone, kNone};  // the last read: for data, for instructions
  u64 prefetched = kNone, prefetched_at = 0;

  bool immediate() const { return read_cycles <= 1 && instruction_cache < 0 && data_cache < 0; }
};

// All memories of a board, with their state.
struct Memories {
  std::vector<Memory> memories;
  std::vector<Cache> caches;
  std::vector<u64> port_free;

  int find(u32 address) const {
    for (std::size_t m = 0; m < memories.size(); ++m)
      if (address >= memories[m].first && address <= memories[m].last) return int(m);
    return -1;
  }

  // Return when an instruction's word at `address`, requested at `start`, has arrived.
  u64 fetch(u32 address, u64 start) {
    const int m = find(address);
    if (m < 0 || memories[m].immediate()) return start + 1;
    Memory& memory = memories[m];
    const u64 unit = address / memory.read_bytes;
    if (memory.buffered[1] == unit) return start + 1;
    memory.buffered[1] = unit;
    Cache* const cache = cache_of(memory.instruction_cache);
    if (cache && cache->look(address, true)) return ++cache->hits, start + 1;
    if (cache) ++cache->misses;
    if (!memory.prefetches) return read(memory, cache, start);
    u64 there;
    if (memory.prefetched == unit) {
      there = std::max(memory.prefetched_at, start + 1);
    } else {
      there = read(memory, cache, start);
    }
    memory.prefetched = unit + 1;
    const bool held = cache && cache->look(u32((unit + 1) * memory.read_bytes), false);
    memory.prefetched_at = held ? there : read(memory, cache, there);
    return there;
  }

  // Return the extra cycles of a load from `address`, requested at `start`.
  u64 load(u32 address, u64 start) {
    const int m = find(address);
    if (m < 0 || memories[m].immediate()) return 0;
    Memory& memory = memories[m];
    const u64 unit = address / memory.read_bytes;
    if (memory.buffered[0] == unit) return 0;
    memory.buffered[0] = unit;
    Cache* const cache = cache_of(memory.data_cache);
    if (cache && cache->look(address, true)) return ++cache->hits, 0;
    if (cache) ++cache->misses;
    return read(memory, cache, start) - start - 1;
  }

  // A store goes through the write buffer: it does not wait, but may fill a line.
  void store(u32 address, u64 start) {
    const int m = find(address);
    if (m < 0) return;
    Memory& memory = memories[m];
    if (memory.buffered[0] == address / memory.read_bytes && memory.data_cache < 0)
      memory.buffered[0] = kNone;
    Cache* const cache = cache_of(memory.data_cache);
    if (cache && memory.store_fills && !cache->look(address, true)) read(memory, cache, start);
  }

 private:
  Cache* cache_of(int index) { return index < 0 ? nullptr : &caches[index]; }

  // Read a sector; the requested word comes first.
  u64 read(Memory& memory, const Cache* cache, u64 start) {
    if (memory.port >= 0) start = std::max(start, port_free[memory.port]);
    const u64 there = start + memory.read_cycles;
    const u32 sector = cache ? cache->sector_bytes : memory.read_bytes;
    const u32 reads = std::max<u32>(1, sector / memory.read_bytes);
    if (memory.port >= 0) port_free[memory.port] = there + u64(reads - 1) * memory.burst_cycles;
    return there;
  }
};

}  // namespace cycles
