import type { DriverRates } from './simulated-driver.ts';
import type { FileRates } from './volume-faults.ts';

/** One action on the volumes of a node, or on their drivers and servers. */
export type VolumeStep =
  | { readonly do: 'driver-faults'; readonly rates: DriverRates }
  | { readonly do: 'file-faults'; readonly rates: FileRates }
  /** Failures of disks, block devices and network mounts. */
  | { readonly do: 'machine-faults'; readonly rates: FileRates }
  | { readonly do: 'no-faults' }
  /** One of the CSI drivers exits and removes its socket (`gone`) or leaves it behind (`deaf`). */
  | { readonly do: 'driver-ends'; readonly choice: number; readonly how: 'deaf' | 'gone' }
  | { readonly do: 'drivers-come-back' }
  /** The NFS server becomes unresponsive, responds again, or loses its exports. */
  | { readonly do: 'server'; readonly what: 'falls-silent' | 'answers' | 'forgets' }
  /** Changes the content of the ConfigMaps and Secrets that pods mount as files. */
  | { readonly do: 'update' }
  /** Creates the optional ConfigMap, or deletes it if it exists. */
  | { readonly do: 'come-or-go' };
