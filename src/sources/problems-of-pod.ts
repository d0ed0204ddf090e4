import type { SourceProblem } from './problems.ts';

export interface NamedPod {
  /** Whether a pod of this full name is meant. */
  readonly isCalled: (fullName: string) => boolean;
  /** Whether anything is known of it besides. */
  readonly isKnown: boolean;
}

/**
 * The problems that concern one pod: those of its own manifest and those of its complete source. A
 * manifest that cannot be parsed names no pod: it is a possible reason for each pod that is not
 * known.
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
