/** Hard limits to what directories hold, as project quotas of their file system; nothing of it makes a pod fail. */
export interface DirectoryQuotas {
  /** Why directories in this one cannot have any; undefined when they can. */
  problemIn(directory: string, signal: AbortSignal): Promise<string | undefined>;
  /**
   * Whoever writes more below the directory, which is empty, gets an error from the kernel. May be repeated, by another
   * process too. Answers why it cannot be had.
   */
  limit(directory: string, bytes: bigint, signal: AbortSignal): Promise<string | undefined>;
  /** Takes the limits away, before the directories are removed; fine for those without. Answers why it cannot be done. */
  release(directories: readonly string[], signal: AbortSignal): Promise<string | undefined>;
}
