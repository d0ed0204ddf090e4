/** A file in the directory of a container's logs. */
export interface LogFile {
  readonly name: string;
  readonly bytes: number;
}

/**
 * The files of container logs, for whoever rotates them. Failures are FILE_READ and FILE_WRITE errors with the system's
 * own as their cause; what is not there is an answer, not a failure.
 */
export interface RotationFiles {
  /** Of a regular file; undefined when there is none. */
  size(path: string): Promise<number | undefined>;
  /** The regular files in a directory, in any order; none when there is no such directory. */
  list(directory: string): Promise<readonly LogFile[]>;
  /** Replaces what is there. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file its old name back, unless somebody has taken that. */
  putBack(from: string, to: string): Promise<'done' | 'taken'>;
  /** Fine when it is not there. */
  remove(path: string): Promise<void>;
  /**
   * Puts `<path>.gz` in the place of the file, by way of `<path>.tmp`: there is always one of them to be read. Without
   * effect when the file goes away meanwhile. Does its work outside of the main thread.
   */
  compress(path: string, signal: AbortSignal): Promise<void>;
  /** What is left on the file system of a directory; undefined when nobody knows. */
  freeBytes(directory: string): Promise<number | undefined>;
}
