/** A log that is open. It stays the same file when its name changes or goes away. */
export interface LogHandle extends AsyncDisposable {
  /** The same for the same file under any name, as long as it is open. */
  readonly identity: string;
  size(): Promise<number>;
  /** Answers how many bytes it read: fewer than there is room for at the end of the file, none behind it. */
  read(into: Uint8Array, position: number): Promise<number>;
}

/** Whether a file was written to, or files came, went or changed their names. */
export type LogHint = 'written' | 'renamed';

/** The files of container logs. Failures are FILE_READ errors; what is not there is an answer, not a failure. */
export interface LogFiles {
  /** Undefined when it is not there. Rejects with LOG_REFUSED for anything but a regular file in its own directory. */
  open(path: string): Promise<LogHandle | undefined>;
  /** Of what is there now; undefined when nothing is. Opens nothing, and is no promise that it can be opened. */
  identityAt(path: string): Promise<string | undefined>;
  /** The names in a directory, in any order; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** A hint and no more: one may come for nothing, and none may come for something. */
  watch(directory: string, hint: (what: LogHint) => void): Disposable;
}
