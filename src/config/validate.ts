import type { FeatureGates, GateFinding } from './feature-gates.ts';
import { type Finding, findingAt, findingIn, keyPath, type Origins, topField } from './findings.ts';
import type { KubeletFlags } from './kubelet-flags.ts';
import { allocationRules } from './rules-allocation.ts';
import { cgroupRules } from './rules-cgroups.ts';
import { evictionRules, imageRules } from './rules-eviction-images.ts';
import { nodeRules, shutdownRules } from './rules-node.ts';
import { loggingRules, serverRules } from './rules-server.ts';
import type { FieldName, KubeletConfiguration } from './schema.ts';

/** The configuration that a rule checks. */
export interface ValidatedConfig {
  readonly config: KubeletConfiguration;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
}

/**
 * Collects the problems and warnings that a rule finds. A field is a path in the configuration, or
 * a flag with its dashes.
 */
export interface RuleReport {
  problem(field: string, message: string): void;
  warning(field: string, message: string): void;
}

/**
 * A condition between several values; conditions for a single value are in the configuration table.
 */
export interface Rule {
  /**
   * The fields that the rule reads. The rule is skipped if one of these fields is unreadable, which
   * was reported already. An unreadable entry of a map counts as missing.
   */
  readonly reads: readonly FieldName[];
  check(subject: ValidatedConfig, report: RuleReport): void;
}

const rules: readonly Rule[] = [
  ...serverRules,
  ...nodeRules,
  ...imageRules,
  ...cgroupRules,
  ...allocationRules,
  ...evictionRules,
  ...shutdownRules,
  ...loggingRules,
];

export interface ValidationResult {
  readonly problems: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/**
 * Checks every rule; `unreadable` contains the problems found while reading the files and flags.
 */
export function validate(
  subject: ValidatedConfig,
  origins: Origins,
  unreadable: readonly Finding[],
): ValidationResult {
  const broken = new Set(unreadable.map((problem) => topField(problem.field)));
  const problems: Finding[] = [];
  const warnings: Finding[] = [];
  const at = (field: string, message: string) =>
    field.startsWith('--') ? findingIn(field, message) : findingAt(origins.of(field), field, message);
  const report: RuleReport = {
    problem: (field, message) => problems.push(at(field, message)),
    warning: (field, message) => warnings.push(at(field, message)),
  };
  for (const rule of rules) {
    if (!rule.reads.some((field) => broken.has(field))) rule.check(subject, report);
  }
  return { problems, warnings };
}

export function reportGates(findings: readonly GateFinding[], origins: Origins): ValidationResult {
  const placed = findings.map((finding) => {
    const field = keyPath('featureGates', finding.gate);
    return { weight: finding.weight, finding: findingAt(origins.of(field), field, finding.message) };
  });
  const of = (weight: GateFinding['weight']) =>
    placed.filter((entry) => entry.weight === weight).map((entry) => entry.finding);
  return { problems: of('error'), warnings: of('warning') };
}
