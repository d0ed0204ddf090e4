import type { SourceProblem } from './problems.ts';

export interface NamedPod {
  /** Whether a pod of this full name is meant. */
  readonly isCalled: (fullName: string) => boolean;
  /** Whether anything is known of it besides. */
  readonly isKnown: boolean;
}

/**
 * The problems that concern one pod: those of its own manifest and those of a whole source. Of a manifest that cannot
 * be read nobody can tell whose it is; of a pod that nobody knows that may be the answer.
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
