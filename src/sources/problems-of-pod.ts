import type { SourceProblem } from './problems.ts';

export interface NamedPod {
  /** Whether the given full name belongs to the requested pod. */
  readonly isCalled: (fullName: string) => boolean;
  /** Whether the requested pod is defined or running. */
  readonly isKnown: boolean;
}

/**
 * Returns the problems that concern one pod: those of its manifest, and those that concern all
 * manifests of a source. A manifest that cannot be parsed names no pod, so it may be the reason why
 * a pod is not defined.
 */
export function problemsOfPod(
  problems: readonly SourceProblem[],
  { isCalled, isKnown }: NamedPod,
): readonly SourceProblem[] {
  return problems.filter(({ pods }) => {
    if (pods === undefined) return true;
    return pods.length === 0 ? !isKnown : pods.some(isCalled);
  });
}
