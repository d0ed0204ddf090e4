/** What is to be mounted from elsewhere. */
export interface NetworkMount {
  readonly type: 'nfs';
  /** As mount(8) takes it. */
  readonly source: string;
  readonly directory: string;
  readonly options: readonly string[];
}

export type Unmounting = 'plain' | 'force' | 'lazy';

/**
 * Mounts of file systems that may stop answering at any moment. Nothing of this process ever touches what is mounted:
 * each method ends in its time, and a program that does not is left behind.
 */
export interface NetworkMounts {
  /** As the kernel lists it. */
  isMounted(directory: string): Promise<boolean>;
  /**
   * Rejects with VOLUME_UNUSABLE, or DEADLINE_EXCEEDED if it hangs. Whatever it rejects with, it may be mounted, or be
   * yet.
   */
  mount(mount: NetworkMount, signal: AbortSignal): Promise<void>;
  /**
   * Only what was mounted last. `force` gives up all that is still asked of the server. `lazy` only takes it out of
   * sight: who has it open has it on, and nobody knows when that ends. Rejects with VOLUME_REMOVE, or DEADLINE_EXCEEDED
   * if it hangs.
   */
  unmount(directory: string, how: Unmounting, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Whether what is mounted there can be used at all. Rejects with DEADLINE_EXCEEDED while nobody answers. */
  look(directory: string, signal: AbortSignal): Promise<'answers' | 'broken'>;
}
