/** The header that tells the other side how long we will wait: at most eight digits and a unit. */
const unitsMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

export function formatTimeout(ms: number): string {
  const whole = Math.max(1, Math.ceil(ms));
  return whole < 1e8 ? `${whole}m` : `${Math.min(99_999_999, Math.ceil(whole / 1_000))}S`;
}

/** Milliseconds; undefined when there is no such header or it says nothing we understand. */
export function parseTimeout(header: unknown): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? [];
  const unitMs = unitsMs[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}
