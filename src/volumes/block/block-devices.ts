/** Devices of a machine as they are given to pods. Failures are VOLUME_UNUSABLE or VOLUME_REMOVE errors. */
export interface BlockDevices {
  /** What device a path leads to in the end; undefined when it leads to none. */
  find(path: string): Promise<string | undefined>;
  /** How large the device is that a path leads to; undefined when it leads to none. */
  sizeOf(path: string): Promise<number | undefined>;
  /** Shows the device at the file, too, which is made. May be repeated. */
  bind(device: string, file: string, signal: AbortSignal): Promise<void>;
  /** Undoes it, and takes the file away; fine when there is none. */
  unbind(file: string, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Holds the device that is shown at the file, so that no other can take its number. May be repeated. */
  pin(file: string, signal: AbortSignal): Promise<void>;
  /** Fine when nothing holds it. */
  unpin(file: string, signal: AbortSignal): Promise<void>;
}
