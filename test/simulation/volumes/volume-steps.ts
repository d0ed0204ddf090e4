import type { DriverRates } from './simulated-driver.ts';
import type { FileRates } from './volume-faults.ts';

/** One thing that is done to the volumes of a node, or to those who mount them. */
export type VolumeStep =
  | { readonly do: 'driver-faults'; readonly rates: DriverRates }
  | { readonly do: 'file-faults'; readonly rates: FileRates }
  | { readonly do: 'no-faults' }
  /** One of the drivers ends, and takes its socket away or not. */
  | { readonly do: 'driver-ends'; readonly choice: number; readonly how: 'deaf' | 'gone' }
  | { readonly do: 'drivers-come-back' }
  /** What the objects say that pods have as files is another. */
  | { readonly do: 'update' };
