// The trace that all simulators read, and their result. docs/offchip.md defines the model.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace offchip {

using Bytes = std::int64_t;

// Return whether the time is up; every long loop asks. Throws if the caller was interrupted.
using Late = std::function<bool()>;
struct TooLate {};  // thrown by functions without a partial result

enum Kind : std::uint8_t { kRead = 1, kWrite = 2, kModify = 3 };  // modify: part of a block

inline bool needs_content(std::uint8_t kind) { return kind & kRead; }
inline bool dirties(std::uint8_t kind) { return kind & kWrite; }

// Accesses in time order; `group[g]` is the index after the last access of group g.
struct Trace {
  const std::int32_t* block;
  const std::uint8_t* kind;
  std::int64_t count;
  const Bytes* size;          // of each block, what a transfer moves
  const std::uint8_t* kept;   // of each block, whether its content is needed off-chip at the end
  std::int64_t blocks;
};

struct Traffic {
  Bytes read = 0, write = 0, created = 0, evicted = 0, dropped = 0;
};

enum After : std::uint8_t { kStays, kDropped, kFlushed };

// Return, for each access, the index of the block's next access, or `count`.
inline std::vector<std::int32_t> next_accesses(const Trace& trace) {
  std::vector<std::int32_t> next(trace.count);
  std::vector<std::int32_t> seen(trace.blocks, std::int32_t(trace.count));
  for (std::int64_t i = trace.count - 1; i >= 0; --i) {
    next[i] = seen[trace.block[i]];
    seen[trace.block[i]] = std::int32_t(i);
  }
  return next;
}

// Return the fate of a block after an access whose block is next accessed at `next`: content that is
// overwritten or never read again is dropped without a write; an output is written and dropped.
inline After after(const Trace& trace, std::int32_t block, std::int32_t next) {
  if (next == trace.count) return trace.kept[block] ? kFlushed : kDropped;
  return trace.kind[next] == kWrite ? kDropped : kStays;
}

}  // namespace offchip
