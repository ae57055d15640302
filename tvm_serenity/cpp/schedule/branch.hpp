// Rule R11: of two ops that are not comparable one runs first; the bounds of both ways bound all.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/cut.hpp"
#include "schedule/instance.hpp"
#include "schedule/limits.hpp"

namespace schedule {

// Best first: the bound is the least of the nodes that are open. It can go on where it ended.
class Branching {
 public:
  // `enough`: a bound above it is of no use.
  Branching(const Instance& instance, Bytes enough) : in_(instance), enough_(enough) {}

  // Branch until the bound is enough, at so many nodes as `limits` has states, or time is over.
  void run(Limits& limits);

  Bytes bound() const { return bound_; }

  // The proof of the bound: of each pair, the ways in which its first and its second op runs before
  // the other, in this order; where they end, the op whose cut is enough.
  std::vector<std::vector<int>> branches() const;

  std::uint64_t nodes() const { return nodes_; }

 private:
  using Pair = std::pair<int, int>;  // the first runs before the second

  static Pair turned(Pair pair) { return {pair.second, pair.first}; }

  // The cuts at one op: one network for each thing that it may take over.
  struct Watch {
    struct Choice {
      Network net;
      Bytes bytes = 0;
      Flow::Sides sides;

      bool inside(int op) const { return sides.reached[net.node[op]]; }
      bool outside(int op) const { return sides.reaching[net.node[op]]; }
    };
    int op = 0;
    std::vector<Choice> choices;

    const Choice& least() const;
    Bytes bytes() const { return least().bytes; }
    std::pair<int, int> arc(const Choice& choice, Pair pair) const;
    bool settle(const std::vector<Pair>& pairs, Limits& limits);
    Bytes with(Pair pair, Limits& limits, bool& late);
  };

  // What every order needs, and where.
  struct Need {
    Bytes bytes;
    int op;
  };

  // The two ways of a pair, in a node that has this need.
  struct Ways {
    struct Way {
      Need need;
      Bytes raised;  // by how much all cuts that were looked at are higher
    };
    // The need of the lesser way, of both, and by how much the lesser way raises cuts.
    using Score = std::tuple<Bytes, Bytes, Bytes, Pair>;

    std::vector<Watch>& watched;
    Need need;
    Bytes enough;
    Limits& limits;
    bool late = false;

    Way with(Pair pair, std::size_t ops);
    Score score(Pair pair, std::size_t ops, Bytes least);
    Pair best(const std::vector<Pair>& pairs);
  };

  struct Node {
    Need need;
    Pair pair = {-1, -1};
    std::size_t ways = 0;  // the first of its two; none: it is open, or needs enough
  };

  struct Open {
    Bytes bound;
    std::vector<Pair> pairs;
    std::size_t node;

    bool operator<(const Open& other) const {  // the last is taken first
      return std::tuple(-bound, pairs.size(), node) <
             std::tuple(-other.bound, other.pairs.size(), other.node);
    }
  };

  bool start(Limits& limits);
  bool watch_more(Limits& limits);
  bool split(const Open& open, Limits& limits);
  std::vector<Pair> watch(const std::vector<Pair>& pairs, std::vector<Watch>& watched,
                          Limits& limits);
  std::vector<Pair> candidates(const std::vector<Watch>& watched,
                               const std::vector<Pair>& pairs) const;
  Table ancestors(const std::vector<Pair>& pairs) const;
  void add(Need need, std::vector<Pair> pairs);

  const Instance& in_;
  const Bytes enough_;
  bool started_ = false;
  Bytes bound_ = 0;
  std::uint64_t nodes_ = 0;
  std::vector<int> ranked_;  // ops by their cuts at the root, highest first
  std::vector<Watch> watched_;
  std::vector<Node> tree_;
  std::priority_queue<Open> open_;
};

}  // namespace schedule
