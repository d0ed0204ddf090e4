/** One thing that must hold for the process to be well. Answers why it does not, or nothing. */
export interface HealthCheck {
  readonly name: string;
  problem(): string | undefined;
}

export interface HealthAnswer {
  readonly status: 200 | 500;
  readonly body: string;
}

export interface HealthView {
  /** As the last line calls it. */
  readonly name: 'healthz' | 'livez' | 'readyz';
  /**
   * Callers of /healthz see that something is wrong, not what: the reasons are in the log, and on the path of the
   * single check.
   */
  readonly reasons: 'shown' | 'withheld';
}

const healthz: HealthView = { name: 'healthz', reasons: 'withheld' };

/** All checks together. */
export function answerHealth(
  checks: readonly HealthCheck[],
  query: URLSearchParams,
  { name, reasons }: HealthView = healthz,
): HealthAnswer {
  const excluded = new Set(query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const check of checks) {
    if (excluded.delete(check.name)) {
      lines.push(`[+]${check.name} excluded: ok`);
      continue;
    }
    const problem = check.problem();
    failed ||= problem !== undefined;
    const why = reasons === 'shown' ? problem : 'reason withheld';
    lines.push(problem === undefined ? `[+]${check.name} ok` : `[-]${check.name} failed: ${why}`);
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((each) => JSON.stringify(each)).join(',');
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (failed) return { status: 500, body: `${lines.join('\n')}\n${name} check failed\n` };
  return { status: 200, body: query.has('verbose') ? `${lines.join('\n')}\n${name} check passed\n` : 'ok' };
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
