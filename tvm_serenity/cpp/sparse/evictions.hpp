// The intervals that MIN evicts, where it does so, and their cost; changes can be undone.
//
// Between two uses of a neuron its value is kept or not: this is an interval, named by the use that
// ends it. If more than M - 3 kept intervals span a connection (two values are its ends, one is the
// connection itself), those that end last are evicted.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/network.hpp"
#include "sparse/uses.hpp"

namespace sparse {

struct Point {                 // of a connection
  int slack = 0;               // intervals that could span it in addition
  int victims[2] = {-1, -1};   // the intervals given up here
  int starts = 0;              // intervals that start here
};

class Evictions {
 public:
  Evictions(const Network& net, int memory, const Uses& uses);

  int room() const { return room_; }  // intervals that may span a connection
  std::int64_t total() const { return total_; }
  const Point& point(int connection) const { return points_[connection]; }
  int given_up(int use) const { return given_up_[use]; }  // where, or -1
  int starts_of(int connection) const {
    return (uses_.after(2 * connection) >= 0) + (uses_.after(2 * connection + 1) >= 0);
  }

  void set(int use, int given_up);
  void put(int connection, const Point& point) {
    was_points_.push_back({connection, points_[connection]});
    points_[connection] = point;
  }
  void use_slack(int connection, int count) {
    was_points_.push_back({connection, points_[connection]});
    points_[connection].slack -= count;
  }
  void keep();
  void undo();

 private:
  struct Was {
    int use, given_up;
  };
  struct WasPoint {
    int connection;
    Point point;
  };

  void simulate();

  const Network& net_;
  const Uses& uses_;
  int room_;
  std::vector<Point> points_;
  std::vector<int> given_up_;
  std::vector<int> late_;  // of each neuron: complete values given up
  std::int64_t total_ = 0, kept_total_ = 0;
  std::vector<Was> was_;
  std::vector<WasPoint> was_points_;
};

}  // namespace sparse
