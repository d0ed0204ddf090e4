import { describeError, KubelingError } from '../../lib/index.ts';
import { isPastLimit } from '../csi/csi-attach.ts';

/** Why a claimed volume cannot be had. */
export type ClaimProblem =
  /** It is not known what is to be mounted. */
  | { readonly kind: 'unprocessed'; readonly volume: string; readonly message: string }
  | {
      readonly kind: 'unmounted';
      readonly volume: string;
      readonly message: string;
      /** Of the event. */
      readonly reason: 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume';
      /** When it may be tried again, if sooner than what failed otherwise. */
      readonly retryAtMs?: number | undefined;
      /** Whether the node has no room for it, and will not have any soon. */
      readonly room?: 'none' | undefined;
    };

/** Of the volume in the pod, by what its making has failed with. */
export function problemOf(volume: string, error: unknown): ClaimProblem {
  const { stage, retryAtMs } = error instanceof KubelingError ? error.details : {};
  const message = describeError(error);
  if (typeof stage !== 'string') return { kind: 'unprocessed', volume, message };
  return {
    kind: 'unmounted',
    volume,
    message,
    reason: reasonAt(stage),
    ...(typeof retryAtMs === 'number' ? { retryAtMs } : {}),
    ...(isPastLimit(error) ? { room: 'none' as const } : {}),
  };
}

function reasonAt(stage: string): 'FailedMount' | 'FailedMapVolume' | 'FailedAttachVolume' {
  if (stage.startsWith('AttachVolume')) return 'FailedAttachVolume';
  return stage.startsWith('MapVolume') ? 'FailedMapVolume' : 'FailedMount';
}
