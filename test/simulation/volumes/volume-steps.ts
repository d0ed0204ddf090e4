import type { DriverRates } from './simulated-driver.ts';
import type { FileRates } from './volume-faults.ts';

/** One action on the volumes of a node, or on their drivers and servers. */
export type VolumeStep =
  | { readonly do: 'driver-faults'; readonly rates: DriverRates }
  | { readonly do: 'file-faults'; readonly rates: FileRates }
  /** With disks, block devices and remote mounts. */
  | { readonly do: 'machine-faults'; readonly rates: FileRates }
  | { readonly do: 'no-faults' }
  /** One of the drivers exits and removes its socket or leaves it behind. */
  | { readonly do: 'driver-ends'; readonly choice: number; readonly how: 'deaf' | 'gone' }
  | { readonly do: 'drivers-come-back' }
  /** The file server is unresponsive for a while, or loses its exports. */
  | { readonly do: 'server'; readonly what: 'falls-silent' | 'answers' | 'forgets' }
  /** Changes the content of the objects that pods mount as files. */
  | { readonly do: 'update' }
  /** The optional object is created, or deleted if it exists. */
  | { readonly do: 'come-or-go' };
