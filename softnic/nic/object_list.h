// SPDX-License-Identifier: Apache-2.0
// The existing objects of one type. While for_each() runs, none of them can be removed.
#pragma once

#include <mutex>
#include <vector>

namespace softnic {

template <class T>
class ObjectList {
 public:
  void add(T& object) {
    const std::lock_guard guard(mutex_);
    objects_.push_back(&object);
  }
  void remove(T& object) {
    const std::lock_guard guard(mutex_);
    std::erase(objects_, &object);
  }
  template <class F>
  void for_each(F&& visit) {
    const std::lock_guard guard(mutex_);
    for (T* object : objects_) visit(*object);
  }

 private:
  std::mutex mutex_;
  std::vector<T*> objects_;
};

}  // namespace softnic
