/** Reads usage of cgroups and of the host from the kernel. */
export { cgroupMeasures, type Measure, nothingMoved } from './cgroup-measures.ts';
export {
  type CgroupFiles,
  type CgroupPressure,
  type CgroupUsage,
  type MemoryUsage,
  type Pressure,
  type PressureStats,
  pressureIn,
  readCgroupUsage,
  type UsageScope,
} from './cgroup-usage.ts';
export {
  defaultInterface,
  type HostMemory,
  hostMemory,
  type InterfaceUsage,
  interfacesIn,
} from './host-usage.ts';
