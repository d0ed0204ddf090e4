import { isMirrorPodOf, isStaticPod, type Pod } from '../../pods/index.ts';

export interface MirrorFacts {
  /** The desired static pod of the name, if any. */
  readonly pod: Pod | undefined;
  /** Its mirror as last delivered by the watch or returned by our own call. */
  readonly mirror: Pod | undefined;
  /** Whether an earlier static pod of that name is still terminating. */
  readonly isEnding: boolean;
  /**
   * Whether the mirror can only show the final status of an earlier instance of the same static
   * pod.
   */
  readonly isOutlived?: boolean | undefined;
}

export type MirrorPlan =
  | { readonly do: 'nothing' }
  /** The mirror shows an existing pod: reconcile again later. */
  | { readonly do: 'wait' }
  | { readonly do: 'create'; readonly pod: Pod }
  | { readonly do: 'delete'; readonly mirror: Pod; readonly why: string }
  | { readonly do: 'replace'; readonly mirror: Pod; readonly pod: Pod; readonly why: string };

/** Decides what to do about the mirror of one name. Pure. */
export function planMirror({ pod: named, mirror, isEnding, isOutlived }: MirrorFacts): MirrorPlan {
  // A pod of the API has no mirror, whatever its name.
  const pod = named !== undefined && isStaticPod(named) ? named : undefined;
  if (pod === undefined && mirror === undefined) return { do: 'nothing' };
  const outlived = isOutlived ? 'it shows an earlier instance of its static pod' : undefined;
  const why = mirror === undefined ? undefined : (whyNot(mirror, pod) ?? outlived);
  if (mirror !== undefined && why === undefined) return { do: 'nothing' };
  // The mirror of a terminating pod is still correct; a new one would show a pod that has not
  // started.
  if (isEnding) return { do: 'wait' };
  if (mirror === undefined || why === undefined)
    return pod === undefined ? { do: 'nothing' } : { do: 'create', pod };
  return pod === undefined ? { do: 'delete', mirror, why } : { do: 'replace', mirror, pod, why };
}

/** Why the mirror must be deleted; undefined if it is correct. */
function whyNot(mirror: Pod, pod: Pod | undefined): string | undefined {
  if (pod === undefined) return 'its static pod no longer exists';
  if (mirror.metadata.deletionTimestamp !== undefined)
    return 'it is being deleted while its static pod is desired';
  return isMirrorPodOf(mirror, pod) ? undefined : 'it shows another version of the static pod';
}
