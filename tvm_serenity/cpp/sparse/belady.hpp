// The I/Os of an order under MIN, kept up to date by what a move changes.
//
// MIN on intervals: from one use of a neuron to its next one a value is kept or not. Where more
// than M - 3 kept intervals span a connection (two values are its ends, one is the connection
// itself), those that end last are given up; a value given up is read again at its next use. After
// a move, old and new schedule run side by side along the order. Only their difference is held: the
// values in fast memory in one of them and not in the other. A connection where neither begins or
// ends, and where both give up the same values, costs a look.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/simulate.hpp"
#include "sparse/top_set.hpp"
#include "sparse/uses.hpp"

namespace sparse {

class Belady {
 public:
  Belady(const Network& net, int memory, const Uses& uses);

  std::int64_t total() const { return total_; }

  // After a move; `undo` comes before that of the uses.
  std::int64_t change();
  void keep();
  void undo();

  std::int64_t simulated() const { return simulated_; }  // connections looked at, in all changes

 private:
  struct Point {  // of a connection
    int slack = 0;               // intervals that could span it in addition
    int victims[2] = {-1, -1};   // the uses up to which intervals were given up here
    char starts = 0;             // intervals that start here
    char marked = 0;             // an interval that changed or differs starts or ends here
  };
  enum class State : char { same, changed, merged };
  struct Was {
    int use, given_up;
  };
  struct WasPoint {
    int connection;
    Point point;
  };

  void rebuild(const std::vector<int>& order);
  int first_point() const;
  void mark(int connection);
  void begin(int position);
  void run(int position);
  void pass_old(const Point& point);
  void leave_old(int connection);
  bool same_at(int connection);
  void at_common(int connection);
  void at_new(int connection);
  int give_back(const Point& old);
  void give_up(int connection, int held, int bound, Point& point);
  int farthest_common(int connection, int held);
  void collect(int here, int count);
  void candidate(int use, int here);
  bool common(int use, int here) const;
  void start_old(int connection);
  void start_new(int connection);
  void add_new(int use);
  void add_old(int use);
  void remove_new(int use);
  void remove_old(int use);
  void merge(int use);
  int top();
  void set(int use, int given_up);
  void put(int connection, const Point& point);
  int difference() const { return static_cast<int>(only_new_.size()) - only_old_; }
  bool idle() const { return only_new_.empty() && only_old_ == 0; }
  int starts_of(int connection) const;
  void finish();

  const Network& net_;
  const Uses& uses_;
  int room_;  // intervals that may span a connection
  std::vector<Point> points_;
  std::vector<int> given_up_;  // of each use: where the interval up to it was given up, or -1
  std::vector<int> late_;      // of each neuron: complete values given up
  std::int64_t total_ = 0, old_total_ = 0, simulated_ = 0;

  std::vector<State> state_;
  std::vector<int> old_start_;  // of a use: the changed interval that started there, or -1
  std::vector<int> old_given_up_;   // of a changed interval
  std::vector<char> in_old_;
  std::vector<char> left_;          // moved connections the old schedule has passed
  std::vector<int> slot_, only_new_;  // place in only_new_, or -1
  int only_old_ = 0, top_ = -1;       // top_: the use of only_new_ that is last, -1: not known
  int next_old_ = 0;                  // position in the old order
  int last_slack_ = 0, last_starts_ = 0;  // of the old schedule's last connection
  int seen_ = -1;                     // what began before this position is in candidates_
  std::vector<int> candidates_;       // keys of what both have, a heap; some are gone
  std::vector<int> marked_;
  std::vector<Was> was_;
  std::vector<WasPoint> was_points_, placed_;
};

}  // namespace sparse
