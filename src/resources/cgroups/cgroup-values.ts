/** What may be set on a cgroup; what is left out is not written. */
export interface CgroupValues {
  readonly cpuShares?: number | undefined;
  /** -1 for no limit. */
  readonly cpuQuotaUs?: number | undefined;
  readonly cpuPeriodUs?: number | undefined;
  /** -1 for no limit; 0 is not written. */
  readonly memoryBytes?: number | undefined;
  /** Memory and swap together in the first version, swap alone in the second. -1 for no limit. */
  readonly swapBytes?: number | undefined;
  /** -1 for no limit. */
  readonly pidsLimit?: number | undefined;
  /** A list such as 0-3. Only the second version has it: in the first a cgroup is given those of the one above it. */
  readonly cpus?: string | undefined;
  /** From the size of a page as files spell it, such as 2MB, to bytes. */
  readonly hugePages?: ReadonlyMap<string, number> | undefined;
}
