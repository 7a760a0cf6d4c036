// The execution provider of one session.
#pragma once

#include "target.hpp"

namespace zyfa::ep {

class Provider : public OrtEp, public Target {
 public:
  Provider(hip::Device& device, const Options& options, const OrtLogger* logger);

 private:
  void claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) const;
  void warn(const std::string& text) const;

  const OrtLogger* logger_;
};

// Of the node that a kernel is made for. Throws Error when it is another provider's.
const Provider& provider_of(const OrtKernelInfo* info);

}  // namespace zyfa::ep
