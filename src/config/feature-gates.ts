import { didYouMean } from '../lib/index.ts';
import {
  type GateName,
  type GateSpec,
  type GateStage,
  gateDependencies,
  gateSpecs,
} from './feature-gate-table.ts';

/** The names AllAlpha and AllBeta, which set every gate of their stage that is not set by name. */
const stageGates: ReadonlyMap<string, GateStage> = new Map([
  ['AllAlpha', 'alpha'],
  ['AllBeta', 'beta'],
]);

const specs: ReadonlyMap<string, GateSpec> = new Map(Object.entries(gateSpecs));

/** The state of all feature gates. Created once from the configuration; immutable. */
export class FeatureGates {
  readonly #written: ReadonlyMap<string, boolean>;

  /** `written` are the gates that were set; they must have passed `checkFeatureGates`. */
  constructor(written: Readonly<Record<string, boolean>> = {}) {
    this.#written = new Map(Object.entries(written));
  }

  enabled(name: GateName): boolean {
    return this.#written.get(name) ?? this.#byStage(gateSpecs[name]) ?? gateSpecs[name].default;
  }

  /** Returns all gates with their stage, sorted by name, for the metric and the status page. */
  list(): readonly { readonly name: GateName; readonly stage: GateStage; readonly enabled: boolean }[] {
    const names = Object.keys(gateSpecs) as GateName[];
    return names.map((name) => ({ name, stage: gateSpecs[name].stage, enabled: this.enabled(name) }));
  }

  #byStage(spec: GateSpec): boolean | undefined {
    if (spec.stage === 'alpha') return this.#written.get('AllAlpha');
    return spec.stage === 'beta' ? this.#written.get('AllBeta') : undefined;
  }
}

/** A problem with a gate that was set: an error or a warning. */
export interface GateFinding {
  readonly gate: string;
  readonly weight: 'error' | 'warning';
  readonly message: string;
}

export function checkFeatureGates(written: Readonly<Record<string, boolean>>): GateFinding[] {
  const findings = Object.entries(written).flatMap(([gate, value]) => checkGate(gate, value));
  // Dependencies are checked only if every gate exists and may be set.
  return findings.some((finding) => finding.weight === 'error')
    ? findings
    : [...findings, ...checkDependencies(written)];
}

function checkGate(gate: string, value: boolean): GateFinding[] {
  if (stageGates.has(gate)) return [];
  const spec = specs.get(gate);
  if (spec === undefined) {
    const hint = didYouMean(gate, [...specs.keys(), ...stageGates.keys()]);
    return [{ gate, weight: 'error', message: `unrecognized feature gate: ${gate}${hint}` }];
  }
  if (spec.locked && spec.default !== value) {
    const message = `cannot set feature gate ${gate} to ${value}, feature is locked to ${spec.default}`;
    return [{ gate, weight: 'error', message }];
  }
  if (spec.stage !== 'stable' && spec.stage !== 'deprecated') return [];
  return [
    {
      gate,
      weight: 'warning',
      message: `the feature is ${spec.stage}: a later version will not know this gate`,
    },
  ];
}

function checkDependencies(written: Readonly<Record<string, boolean>>): GateFinding[] {
  const gates = new FeatureGates(written);
  const names = Object.keys(gateDependencies) as GateName[];
  return names.flatMap((gate): GateFinding[] => {
    const off = (gateDependencies[gate] ?? []).filter((needed) => !gates.enabled(needed));
    if (off.length === 0 || !gates.enabled(gate)) return [];
    const message = `${gate} is enabled, but depends on features that are disabled: ${off.join(', ')}`;
    return [{ gate: blamed(gate, off, written), weight: 'error', message }];
  });
}

/**
 * Returns the gate that caused the conflict: the gate that was set, rather than a gate with its
 * default.
 */
function blamed(gate: string, off: readonly string[], written: Readonly<Record<string, boolean>>): string {
  const stages = [...stageGates.keys()];
  return [gate, ...off, ...stages].find((name) => Object.hasOwn(written, name)) ?? gate;
}
