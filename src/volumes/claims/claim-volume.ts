import type { VolumePlugin } from '../manager/volume-metrics.ts';

/** Where a volume is to be found. */
export type ClaimVolume =
  | {
      readonly kind: 'path';
      readonly hostPath: string;
      readonly readOnly: boolean;
      readonly relabel: boolean;
      /** What parts of it are kept under. */
      readonly specName: string;
      /** As metrics call it, where its place does not say. */
      readonly plugin?: VolumePlugin | undefined;
    }
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      /** As above. */
      readonly plugin?: VolumePlugin | undefined;
    };
