// The limits at which a search stops without an answer, and its progress reports.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace schedule {

enum class Status { feasible, infeasible, states, time, memory };

struct Limits {
  using Clock = std::chrono::steady_clock;

  std::uint64_t states = UINT64_MAX;
  double seconds = 1e18;
  std::size_t memory_bytes = SIZE_MAX;
  std::function<void(std::uint64_t states)> poll;  // every 50 ms; may throw to interrupt

  // Called at every state; checks the clock at every 64th.
  bool out_of_time(std::uint64_t done) {
    return ++calls_ & 63 ? false : late(done);
  }

  // The same, with an immediate check of the clock.
  bool late(std::uint64_t done) {
    const auto now = Clock::now();
    if (poll && now - last_poll_ > std::chrono::milliseconds(50)) {
      poll(done);
      last_poll_ = Clock::now();
    }
    return std::chrono::duration<double>(now - start_).count() > seconds;
  }

 private:
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_poll_ = start_;
  std::uint64_t calls_ = 0;
};

}  // namespace schedule
