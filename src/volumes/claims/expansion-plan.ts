import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  PersistentVolumeClaimStatus,
} from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';

/** A merge patch of the claim status; null removes a field. */
export interface ClaimChange {
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatedResourceStatuses?: Readonly<Record<string, string | null>>;
  readonly conditions?: readonly PersistentVolumeClaimCondition[];
}

export type ExpansionPlan =
  | { readonly do: 'nothing' }
  /** The volume must be expanded but is mounted read-only. */
  | { readonly do: 'refuse' }
  | {
      readonly do: 'expand';
      /** The size of the PersistentVolume. */
      readonly size: string;
      readonly bytes: bigint;
      /**
       * Which status the claim gets: each step, only the capacity on clusters without the step
       * status, or none.
       */
      readonly told: 'steps' | 'size' | 'nothing';
    };

const storage = 'storage';
const notRequired = 'volume.kubernetes.io/node-expansion-not-required';
/** The conditions that are set only during an expansion. */
const resizing: ReadonlySet<string> = new Set([
  'FileSystemResizePending',
  'Resizing',
  'ControllerResizeError',
  'NodeResizeError',
]);

/**
 * Decides whether a volume must be expanded on this node. `here` is its size after the last
 * expansion on this node.
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
  // Another node has updated the claim already; the file system of this node still has to grow.
  const isShared = volume.spec?.accessModes?.includes('ReadWriteMany') === true;
  const isNeeded = claim.metadata?.annotations?.[notRequired] === undefined;
  const isBehind = here !== undefined && here < wanted && access === 'writable';
  return isShared && isNeeded && isBehind && step === undefined ? expand('nothing') : { do: 'nothing' };
}

/** Returns the capacity in the claim status; undefined if it is not set. */
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

/** The requested size can never be reached. */
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
