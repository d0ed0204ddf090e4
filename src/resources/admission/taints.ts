import type { Taint, Toleration } from '../../kinds/index.ts';

/**
 * Whether tolerations may use the operators Lt and Gt (`with-comparisons`), which require a feature
 * gate.
 */
export type TolerationRules = 'plain' | 'with-comparisons';

export function isTolerated(
  taint: Taint,
  tolerations: readonly Toleration[] = [],
  rules: TolerationRules = 'plain',
): boolean {
  return tolerations.some((one) => tolerates(one, taint, rules));
}

/** An empty field of a toleration matches any taint. */
function tolerates(
  { key, operator, value, effect }: Toleration,
  taint: Taint,
  rules: TolerationRules,
): boolean {
  if (isSet(effect) && effect !== taint.effect) return false;
  if (isSet(key) && key !== taint.key) return false;
  switch (operator ?? '') {
    case '':
    case 'Equal':
      return (value ?? '') === (taint.value ?? '');
    case 'Exists':
      return true;
    case 'Lt':
    case 'Gt':
      return rules === 'with-comparisons' && compares(operator === 'Lt', taint.value, value);
    default:
      return false;
  }
}

function compares(isBelow: boolean, tainted: string | undefined, limit: string | undefined): boolean {
  const [a, b] = [tainted, limit].map((text) =>
    /^(?:0|-?[1-9]\d{0,18})$/.test(text ?? '') ? BigInt(text ?? '') : undefined,
  );
  if (a === undefined || b === undefined) return false;
  return isBelow ? a < b : a > b;
}

function isSet(text: string | undefined): boolean {
  return text !== undefined && text !== '';
}
