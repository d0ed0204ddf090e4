import { isMirrorPodOf, isStaticPod, type Pod } from '../../pods/index.ts';

export interface MirrorFacts {
  /** The static pod of the name, if one is wanted. */
  readonly pod: Pod | undefined;
  /** Its mirror as the watch, or else our own call, last told of it. */
  readonly mirror: Pod | undefined;
  /** Whether an earlier static pod of that name is still being ended. */
  readonly isEnding: boolean;
  /** Whether the mirror can tell nothing but how the same static pod ended before it came again. */
  readonly isOutlived?: boolean | undefined;
}

export type MirrorPlan =
  | { readonly do: 'nothing' }
  /** The mirror shows what is still there: look again later. */
  | { readonly do: 'wait' }
  | { readonly do: 'create'; readonly pod: Pod }
  | { readonly do: 'delete'; readonly mirror: Pod; readonly why: string }
  | { readonly do: 'replace'; readonly mirror: Pod; readonly pod: Pod; readonly why: string };

/** What to do about the mirror of one name. Pure. */
export function planMirror({ pod: named, mirror, isEnding, isOutlived }: MirrorFacts): MirrorPlan {
  // A pod of the API has no mirror, whatever it is called.
  const pod = named !== undefined && isStaticPod(named) ? named : undefined;
  if (pod === undefined && mirror === undefined) return { do: 'nothing' };
  const outlived = isOutlived ? 'it shows an earlier life of its static pod' : undefined;
  const why = mirror === undefined ? undefined : (whyNot(mirror, pod) ?? outlived);
  if (mirror !== undefined && why === undefined) return { do: 'nothing' };
  // What a mirror shows of a pod that ends is still true, and a new one would show what has not begun.
  if (isEnding) return { do: 'wait' };
  if (mirror === undefined || why === undefined)
    return pod === undefined ? { do: 'nothing' } : { do: 'create', pod };
  return pod === undefined ? { do: 'delete', mirror, why } : { do: 'replace', mirror, pod, why };
}

/** Why the mirror cannot stay; undefined when it can. */
function whyNot(mirror: Pod, pod: Pod | undefined): string | undefined {
  if (pod === undefined) return 'there is no such static pod any more';
  if (mirror.metadata.deletionTimestamp !== undefined)
    return 'somebody deletes it while its static pod goes on';
  return isMirrorPodOf(mirror, pod) ? undefined : 'it shows another version of the static pod';
}
