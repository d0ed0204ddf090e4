import { type Clock, describeError, withDeadline } from '../../lib/index.ts';
import type { Check, Finding, Observation, Patient } from './check.ts';

const deadlineMs = 10_000;

/** Makes every check look, all at once, and answers their findings in the order of the checks. */
export async function examine(
  checks: readonly Check[],
  patient: Patient,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const all = await Promise.all(
    checks.map(async (check) => {
      const observations = await lookSafely(check, patient, clock, signal);
      return observations.map((observation) => ({ ...observation, check: check.name }));
    }),
  );
  signal.throwIfAborted();
  return all.flat();
}

async function lookSafely(
  check: Check,
  patient: Patient,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Observation[]> {
  const deadline = { clock, ms: deadlineMs, what: `look at ${check.name}` };
  try {
    return await withDeadline(deadline, (inner) => check.look(patient, inner), signal);
  } catch (error) {
    return [
      {
        severity: 'warn',
        finding: `could not be looked at: ${describeError(error)}`,
        consequence: 'kubeling may meet the same obstacle when it runs',
        advice: 'find out why this cannot be read here',
      },
    ];
  }
}
