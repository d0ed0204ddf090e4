/** What the kernel says has been used. */
export { cgroupMeasures, type Measure } from './cgroup-measures.ts';
export { type CgroupUsage, type MemoryUsage, readCgroupUsage } from './cgroup-usage.ts';
export {
  defaultInterface,
  type HostMemory,
  hostMemory,
  type InterfaceUsage,
  interfacesIn,
} from './host-usage.ts';
