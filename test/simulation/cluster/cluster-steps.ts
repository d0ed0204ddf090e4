import type { ApiFaultRates } from '../../simulator/index.ts';
import type { ContainerSize, ContainerSketch, PodSketch } from '../sketch.ts';

/** One thing that is done to the API server, or through it. */
export type ClusterStep =
  | { readonly do: 'create'; readonly sketch: PodSketch }
  /** Of labels and annotations: nothing that runs may notice. */
  | { readonly do: 'label'; readonly name: string; readonly value: string }
  | { readonly do: 'new-image'; readonly name: string }
  /** Containers that are not named stay as they are. */
  | {
      readonly do: 'resize';
      readonly name: string;
      readonly sizes: Readonly<Record<string, ContainerSize>>;
    }
  | { readonly do: 'look-into'; readonly name: string; readonly container: ContainerSketch }
  /** By force if it has no grace; with another of the same name after it if that is given. */
  | {
      readonly do: 'delete';
      readonly name: string;
      readonly grace?: number | undefined;
      readonly next?: PodSketch | undefined;
    }
  /** Somebody else calls it unready, as a controller does whose heart stood still. */
  | { readonly do: 'call-unready'; readonly name: string }
  | { readonly do: 'delete-mirror'; readonly name: string; readonly grace?: number | undefined }
  | { readonly do: 'delete-node' }
  | { readonly do: 'faults'; readonly rates: ApiFaultRates; readonly maxDelayMs: number }
  | { readonly do: 'no-faults' }
  | { readonly do: 'go-away'; readonly how: 'refusing' | 'silent' }
  | { readonly do: 'come-back' }
  | { readonly do: 'compact' }
  | { readonly do: 'cut-watches' };
