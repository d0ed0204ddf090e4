import { isMirrorPodOf, isStaticPod, type Pod } from '../../pods/index.ts';

export interface MirrorFacts {
  /** The desired static pod with the name; undefined when there is none. */
  readonly pod: Pod | undefined;
  /** The mirror pod as last delivered by the watch or returned by a call of this kubelet. */
  readonly mirror: Pod | undefined;
  /** Whether an earlier static pod with the name is still terminating. */
  readonly isEnding: boolean;
  /**
   * Whether the mirror pod can only show the final status of an earlier instance of the same static
   * pod.
   */
  readonly isOutlived?: boolean | undefined;
}

export type MirrorPlan =
  | { readonly do: 'nothing' }
  /** An earlier static pod with the name is still terminating: reconcile again later. */
  | { readonly do: 'wait' }
  | { readonly do: 'create'; readonly pod: Pod }
  | { readonly do: 'delete'; readonly mirror: Pod; readonly why: string }
  | { readonly do: 'replace'; readonly mirror: Pod; readonly pod: Pod; readonly why: string };

/** Decides whether to create, delete or keep the mirror pod of one name. A pure function. */
export function planMirror({ pod: named, mirror, isEnding, isOutlived }: MirrorFacts): MirrorPlan {
  // A pod from the API server has no mirror pod, whatever its name.
  const pod = named !== undefined && isStaticPod(named) ? named : undefined;
  if (pod === undefined && mirror === undefined) return { do: 'nothing' };
  const outlived = isOutlived ? 'it shows an earlier instance of its static pod' : undefined;
  const why = mirror === undefined ? undefined : (whyNot(mirror, pod) ?? outlived);
  if (mirror !== undefined && why === undefined) return { do: 'nothing' };
  // The mirror pod of a terminating pod is still correct; a new one would show a pod that has not
  // started.
  if (isEnding) return { do: 'wait' };
  if (mirror === undefined || why === undefined)
    return pod === undefined ? { do: 'nothing' } : { do: 'create', pod };
  return pod === undefined ? { do: 'delete', mirror, why } : { do: 'replace', mirror, pod, why };
}

/** Why the mirror pod must be deleted; undefined when it is correct. */
function whyNot(mirror: Pod, pod: Pod | undefined): string | undefined {
  if (pod === undefined) return 'its static pod no longer exists';
  if (mirror.metadata.deletionTimestamp !== undefined)
    return 'it is being deleted while its static pod is desired';
  return isMirrorPodOf(mirror, pod) ? undefined : 'it shows another version of the static pod';
}
