/** One thing that must hold for the process to be well. Answers why it does not, or nothing. */
export interface HealthCheck {
  readonly name: string;
  problem(): string | undefined;
}

export interface HealthAnswer {
  readonly status: 200 | 500;
  readonly body: string;
}

/**
 * All checks together. Callers without a right to details see that something is wrong, not what: the reasons are in
 * the log, and on the path of the single check.
 */
export function answerHealth(checks: readonly HealthCheck[], query: URLSearchParams): HealthAnswer {
  const excluded = new Set(query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const check of checks) {
    if (excluded.delete(check.name)) lines.push(`[+]${check.name} excluded: ok`);
    else if (check.problem() === undefined) lines.push(`[+]${check.name} ok`);
    else {
      failed = true;
      lines.push(`[-]${check.name} failed: reason withheld`);
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).join(',');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) return { status: 500, body: `${lines.join('\n')}\nhealthz check failed\n` };
  return { status: 200, body: query.has('verbose') ? `${lines.join('\n')}\nhealthz check passed\n` : 'ok' };
}

/** One check by its name; undefined when there is none. */
export function answerCheck(checks: readonly HealthCheck[], name: string): HealthAnswer | undefined {
  const check = checks.find((candidate) => candidate.name === name);
  if (check === undefined) return undefined;
  const problem = check.problem();
  return problem === undefined
    ? { status: 200, body: 'ok' }
    : { status: 500, body: `internal server error: ${problem}\n` };
}
