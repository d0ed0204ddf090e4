import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  PersistentVolumeClaimStatus,
} from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';

/** What of the status of a claim becomes another, as a merge patch has it: null takes away. */
export interface ClaimChange {
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatedResourceStatuses?: Readonly<Record<string, string | null>>;
  readonly conditions?: readonly PersistentVolumeClaimCondition[];
}

export type ExpansionPlan =
  | { readonly do: 'nothing' }
  /** It must be expanded and cannot be, for it is read-only. */
  | { readonly do: 'refuse' }
  | {
      readonly do: 'expand';
      /** As the volume has it. */
      readonly size: string;
      readonly bytes: bigint;
      /** What the claim is told: each step, the new size only where nobody knows of steps, or nothing. */
      readonly told: 'steps' | 'size' | 'nothing';
    };

const storage = 'storage';
const notRequired = 'volume.kubernetes.io/node-expansion-not-required';
/** What is said of a claim while its volume grows, and no longer after. */
const resizing: ReadonlySet<string> = new Set([
  'FileSystemResizePending',
  'Resizing',
  'ControllerResizeError',
  'NodeResizeError',
]);

/**
 * Whether a volume is to be made as large here as it has become elsewhere.
 * `here` is how large it was when it was last known to be of that size on this node.
 */
export function planExpansion(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  access: 'read-only' | 'writable',
  here: bigint | undefined,
): ExpansionPlan {
  const size = volume.spec?.capacity?.[storage];
  const [wanted, had] = [bytesOf(size), claimedBytes(claim)];
  if (size === undefined || wanted === undefined || had === undefined) return { do: 'nothing' };
  const step = stepOf(claim);
  const expand = (told: 'steps' | 'size' | 'nothing') =>
    ({ do: 'expand', size, bytes: wanted, told }) as const;
  if (wanted > had) {
    if (step === undefined && claim.status?.allocatedResources === undefined)
      return access === 'read-only' ? { do: 'refuse' } : expand('size');
    if (step !== 'NodeResizePending' && step !== 'NodeResizeInProgress') return { do: 'nothing' };
    return access === 'read-only' ? { do: 'refuse' } : expand('steps');
  }
  // Another node has told the claim already; this one has yet to follow.
  const isShared = volume.spec?.accessModes?.includes('ReadWriteMany') === true;
  const isNeeded = claim.metadata?.annotations?.[notRequired] === undefined;
  const isBehind = here !== undefined && here < wanted && access === 'writable';
  return isShared && isNeeded && isBehind && step === undefined ? expand('nothing') : { do: 'nothing' };
}

/** How large the claim is known to be; undefined while it is not said. */
export function claimedBytes({ status }: PersistentVolumeClaim): bigint | undefined {
  return bytesOf(status?.capacity?.[storage]);
}

export function stepOf({ status }: PersistentVolumeClaim): string | undefined {
  return status?.allocatedResourceStatuses?.[storage];
}

export function begun(): ClaimChange {
  return { allocatedResourceStatuses: { [storage]: 'NodeResizeInProgress' } };
}

export function finished(status: PersistentVolumeClaimStatus | undefined, size: string): ClaimChange {
  return {
    capacity: { ...status?.capacity, [storage]: size },
    ...(status?.allocatedResourceStatuses?.[storage] === undefined
      ? {}
      : { allocatedResourceStatuses: { [storage]: null } }),
    conditions: conditionsBesides(status),
  };
}

/** It cannot ever be as large as it should. */
export function infeasible(
  status: PersistentVolumeClaimStatus | undefined,
  why: string,
  time: string,
): ClaimChange {
  const message = `failed to expand pvc with ${why}`;
  const condition = { type: 'NodeResizeError', status: 'True', lastTransitionTime: time, message };
  return {
    allocatedResourceStatuses: { [storage]: 'NodeResizeInfeasible' },
    conditions: [...conditionsBesides(status), condition],
  };
}

function conditionsBesides(
  status: PersistentVolumeClaimStatus | undefined,
): readonly PersistentVolumeClaimCondition[] {
  return (status?.conditions ?? []).filter(({ type }) => !resizing.has(type));
}

function bytesOf(text: string | undefined): bigint | undefined {
  const parsed = text === undefined ? undefined : tryParseQuantity(text);
  return parsed === undefined ? undefined : quantityValue(parsed);
}
