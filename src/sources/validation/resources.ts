import type { FieldPath, PodSpec, ResourceClaim, ResourceRequirements } from '../../kinds/index.ts';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  tryParseQuantity,
} from '../../lib/index.ts';
import {
  aggregateContainers,
  isHugePages,
  isPodLevelResource,
  type ResourceList,
} from '../defaults/resources.ts';
import { dnsLabel, qualifiedName } from './names.ts';
import { checkText, missing, type Report, refuse, repeated, wrong } from './report.ts';

const one = 1_000_000_000n;

type Level = 'container' | 'pod' | 'overhead';

export function checkResources(
  report: Report,
  path: FieldPath,
  resources: ResourceRequirements | undefined,
  context: { readonly level: Level; readonly claims: ReadonlySet<string> },
): void {
  if (resources === undefined) return;
  const { limits = {}, requests = {}, claims = [] } = resources;
  checkAmounts(report, path.child('limits'), limits, context.level);
  checkAmounts(report, path.child('requests'), requests, context.level);
  for (const [name, amount] of Object.entries(requests)) checkRequest(report, path, { name, amount, limits });
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory'))
    report(path, 'must have cpu or memory beside huge pages');
  checkClaims(report, path.child('claims'), claims, context.claims);
}

export function checkOverhead(report: Report, path: FieldPath, overhead: ResourceList | undefined): void {
  checkAmounts(report, path, overhead ?? {}, 'overhead');
}

function checkAmounts(report: Report, path: FieldPath, list: ResourceList, level: Level): void {
  for (const [name, amount] of Object.entries(list)) {
    const at = path.key(name);
    const must = resourceNameRule(name, level);
    if (must !== undefined) report(at, `must be about a resource whose name would ${must}`);
    checkAmount(report, at, name, parseQuantity(amount));
  }
}

function checkAmount(report: Report, path: FieldPath, name: string, quantity: Quantity): void {
  const text = formatQuantity(quantity);
  if (quantity.nanos < 0n) wrong(report, path, text, 'not be negative');
  if (isExtended(name) && quantity.nanos % one !== 0n) wrong(report, path, text, 'be a whole number');
  if (!isHugePages(name)) return;
  const page = tryParseQuantity(name.slice('hugepages-'.length));
  const sound = page !== undefined && page.nanos > 0n && quantity.nanos % page.nanos === 0n;
  if (!sound) wrong(report, path, text, 'be a whole number of pages of that size');
}

function resourceNameRule(name: string, level: Level): string | undefined {
  const must = qualifiedName(name);
  if (must !== undefined) return must;
  if (level === 'pod') return isPodLevelResource(name) ? undefined : 'be cpu, memory or hugepages-<size>';
  const plain = ['cpu', 'memory', 'ephemeral-storage'];
  if (!name.includes('/'))
    return plain.includes(name) || isHugePages(name)
      ? undefined
      : `be ${plain.join(', ')}, hugepages-<size> or have a domain`;
  return isNative(name) || isExtended(name) ? undefined : 'be that of an extended resource';
}

/** Names without a domain, or with one of Kubernetes itself. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.') && qualifiedName(`requests.${name}`) === undefined;
}

/** Devices and huge pages cannot be promised twice, so what is asked for is what is given. */
function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

interface Request {
  readonly name: string;
  readonly amount: string;
  readonly limits: ResourceList;
}

function checkRequest(report: Report, path: FieldPath, { name, amount, limits }: Request): void {
  const at = path.child('requests').key(name);
  const limit = limits[name];
  if (limit === undefined) {
    if (!isOvercommitAllowed(name))
      missing(report, path.child('limits').key(name), 'as it cannot be overcommitted');
    return;
  }
  const order = compareQuantities(parseQuantity(amount), parseQuantity(limit));
  if (order !== 0 && !isOvercommitAllowed(name))
    wrong(report, at, amount, `be equal to the limit of ${limit}`);
  else if (order > 0) wrong(report, at, amount, `not be more than the limit of ${limit}`);
}

function checkClaims(
  report: Report,
  path: FieldPath,
  claims: readonly ResourceClaim[],
  known: ReadonlySet<string>,
): void {
  const used = new Set<string>();
  claims.forEach(({ name, request }, index) => {
    const at = path.index(index);
    if (!name) {
      missing(report, at.child('name'));
      return;
    }
    checkText(report, at.child('request'), request, dnsLabel);
    const key = request ? `${name}/${request}` : name;
    const overlaps =
      used.has(name) ||
      [...used].some((other) => other === key || (!request && other.startsWith(`${name}/`)));
    if (overlaps) repeated(report, at, key);
    used.add(key);
    if (!known.has(name)) wrong(report, at.child('name'), name, 'be the name of one of spec.resourceClaims');
  });
}

/** What a pod gets as a whole must be enough for its containers. */
export function checkPodResources(report: Report, spec: PodSpec, path: FieldPath): void {
  const { resources } = spec;
  const at = path.child('resources');
  if (resources === undefined) return;
  if (spec.os?.name === 'windows') {
    refuse(report, at, 'for a Windows pod');
    return;
  }
  if (resources.claims !== undefined) refuse(report, at.child('claims'), 'for a pod as a whole');
  checkResources(report, at, { ...resources, claims: [] }, { level: 'pod', claims: new Set() });
  for (const [name, needed] of aggregateContainers(spec, 'requests'))
    checkEnough(report, at.child('requests').key(name), resources.requests?.[name], needed);
  for (const [name, needed] of aggregateContainers(spec, 'limits'))
    if (isHugePages(name))
      checkEnough(report, at.child('limits').key(name), resources.limits?.[name], needed);
  checkContainerLimits(report, spec, path);
}

function checkEnough(report: Report, path: FieldPath, given: string | undefined, needed: Quantity): void {
  if (given === undefined || compareQuantities(needed, parseQuantity(given)) <= 0) return;
  wrong(report, path, given, `be at least the ${formatQuantity(needed)} of all containers together`);
}

function checkContainerLimits(report: Report, spec: PodSpec, path: FieldPath): void {
  spec.containers.forEach((container, index) => {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const whole = spec.resources?.limits?.[name];
      if (whole !== undefined && compareQuantities(parseQuantity(limit), parseQuantity(whole)) > 0)
        wrong(
          report,
          path.child('containers').index(index).child('resources', 'limits').key(name),
          limit,
          `not be more than the ${whole} of the whole pod`,
        );
    }
  });
}
