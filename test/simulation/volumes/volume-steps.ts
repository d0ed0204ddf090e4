import type { DriverRates } from './simulated-driver.ts';
import type { FileRates } from './volume-faults.ts';

/** One thing that is done to the volumes of a node, or to those who mount them. */
export type VolumeStep =
  | { readonly do: 'driver-faults'; readonly rates: DriverRates }
  | { readonly do: 'file-faults'; readonly rates: FileRates }
  /** With disks, devices and what is mounted from elsewhere. */
  | { readonly do: 'machine-faults'; readonly rates: FileRates }
  | { readonly do: 'no-faults' }
  /** One of the drivers ends, and takes its socket away or not. */
  | { readonly do: 'driver-ends'; readonly choice: number; readonly how: 'deaf' | 'gone' }
  | { readonly do: 'drivers-come-back' }
  /** The server of directories says nothing for a while, or forgets what it has given out. */
  | { readonly do: 'server'; readonly what: 'falls-silent' | 'answers' | 'forgets' }
  /** What the objects say that pods have as files is another. */
  | { readonly do: 'update' }
  /** The object that pods can do without is made, or deleted if it is there. */
  | { readonly do: 'come-or-go' };
