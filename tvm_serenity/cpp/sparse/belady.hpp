// The I/Os of an order under MIN, updated incrementally after each move.
//
// After a move, the old and the new schedule run side by side along the order. Only their difference
// is stored: the values in fast memory in one of them alone. Without a difference, the simulation
// skips to the next connection at which a changed interval begins or ends. A connection without such
// a begin or end, where both schedules evict the same values, costs one check.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sparse/candidates.hpp"
#include "sparse/difference.hpp"
#include "sparse/evictions.hpp"
#include "sparse/position_set.hpp"
#include "sparse/uses.hpp"

namespace sparse {

class Belady {
 public:
  Belady(const Network& net, int memory, const Uses& uses);

  std::int64_t total() const { return evictions_.total(); }

  // After a move; `undo` comes before that of the uses.
  std::int64_t change();
  void keep() { evictions_.keep(); }
  void undo() { evictions_.undo(); }

  std::int64_t simulated() const { return simulated_; }  // connections looked at, in all changes

 private:
  void prepare();
  int first_point() const;
  int first_given_up(int begin) const;
  void mark(int connection);
  void begin(int first);
  void run(int position);
  bool is_touched(int connection) const;
  void pass_old(const Point& point);
  void leave_old(int connection);
  bool gives_up_the_same(const Point& point);
  void at_common(int connection);
  void at_new(int connection);
  Label give_back(const Point& old);
  void give_up(int connection, int held, Label bound, Point& point);
  void start_old(int connection);
  void start_new(int connection);
  void add_new(int use);
  void add_old(int use);
  void merge(int use);
  void finish();

  const Uses& uses_;
  Evictions evictions_;
  Difference difference_;
  Candidates candidates_;
  PositionSet events_;              // old positions of `marked_`; the end
  std::vector<int> marked_;         // connections at which what changed or differs begins or ends
  std::vector<int> old_start_;      // of a use: the changed interval that started there, or -1
  std::vector<int> old_given_up_;   // of a changed interval
  std::vector<std::pair<int, Point>> placed_;
  int next_ = 0;                    // old position that comes next
  int last_slack_ = 0, last_starts_ = 0;  // of the old schedule's last connection
  std::int64_t simulated_ = 0;
};

}  // namespace sparse
