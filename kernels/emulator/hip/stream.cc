#include "stream.hpp"

#include <new>
#include <utility>

#include "report.hpp"

namespace zyfa::emulator::hip {

Stream::Stream(unsigned stream_flags) : flags(stream_flags), thread_([this] { run(); }) {}

Stream::~Stream() { stop(); }

uint64_t Stream::add(std::vector<Point> after, Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back({std::move(after), std::move(work)});
  changed_.notify_all();
  return ++added_;
}

uint64_t Stream::added() const {
  const std::lock_guard lock(mutex_);
  return added_;
}

hipError_t Stream::wait(uint64_t number) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number; });
  return failure_;
}

hipError_t Stream::query(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  if (failure_ != hipSuccess) return failure_;
  return done_ >= number ? hipSuccess : hipErrorNotReady;
}

hipError_t Stream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Stream::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

hipError_t Stream::run_one(const Item& item) const {
  // Failure spreads along order: what was to run behind failed work does not run either.
  for (const Point& point : item.after)
    if (const hipError_t code = point.stream->wait(point.number); code != hipSuccess) return code;
  try {
    item.work();
    return hipSuccess;
  } catch (const HipError& error) {
    report().fail(error.what());
    return error.code;
  } catch (const std::bad_alloc&) {
    report().fail("the host has no memory left for this work");
    return hipErrorOutOfMemory;
  } catch (const std::exception& error) {
    report().fail(error.what());
    return hipErrorLaunchFailure;
  }
}

void Stream::run() {
  for (;;) {
    Item item;
    hipError_t code;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
      code = failure_;
    }
    if (code == hipSuccess) code = run_one(item);
    item = {};
    const std::lock_guard lock(mutex_);
    failure_ = code;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace zyfa::emulator::hip
