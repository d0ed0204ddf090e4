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
} from '../defaults/containers.ts';
import { dnsLabel, qualifiedName } from './names.ts';
import {
  checkText,
  missing,
  named,
  notNegative,
  notThere,
  type Report,
  refuse,
  repeated,
  unsupported,
  wrong,
} from './report.ts';

const one = 1_000_000_000n;

type Level = 'container' | 'pod';

export function checkResources(
  report: Report,
  path: FieldPath,
  resources: ResourceRequirements | undefined,
  context: { readonly level: Level; readonly claims: ReadonlySet<string> },
): void {
  if (resources === undefined) return;
  const { limits = {}, requests = {}, claims = [] } = resources;
  for (const [name, amount] of Object.entries(limits))
    checkAmount(report, path.child('limits').key(name), { name, amount, level: context.level });
  for (const [name, amount] of Object.entries(requests)) {
    const at = path.child('requests').key(name);
    const quantity = parseQuantity(amount);
    checkResourceName(report, at, name, context.level);
    checkQuantity(report, at, name, quantity);
    checkRequest(report, path, { name, amount, limits });
    checkPages(report, at, name, quantity);
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory'))
    refuse(report, path, 'HugePages require cpu or memory');
  checkClaims(report, path.child('claims'), claims, context.claims);
}

/** Errors of the overhead are reported as errors of its limits, as in the API server. */
export function checkOverhead(report: Report, path: FieldPath, overhead: ResourceList | undefined): void {
  for (const [name, amount] of Object.entries(overhead ?? {}))
    checkAmount(named(report, path.child('limits').key(name)), path.key(name), {
      name,
      amount,
      level: 'container',
    });
}

interface Amount {
  readonly name: string;
  readonly amount: string;
  readonly level: Level;
}

function checkAmount(report: Report, path: FieldPath, { name, amount, level }: Amount): void {
  const quantity = parseQuantity(amount);
  checkResourceName(report, path, name, level);
  checkQuantity(report, path, name, quantity);
  checkPages(report, path, name, quantity);
}

function checkQuantity(report: Report, path: FieldPath, name: string, quantity: Quantity): void {
  if (quantity.nanos < 0n) wrong(report, path, formatQuantity(quantity), notNegative);
  if (quantity.nanos % one !== 0n && isExtended(name))
    wrong(report, path, formatQuantity(quantity), 'must be an integer');
}

function checkPages(report: Report, path: FieldPath, name: string, quantity: Quantity): void {
  if (!isHugePages(name)) return;
  const page = tryParseQuantity(name.slice('hugepages-'.length));
  const text = formatQuantity(quantity);
  if (page === undefined || page.nanos <= 0n || quantity.nanos % page.nanos !== 0n)
    wrong(report, path, text, `${text} is not positive integer multiple of ${name}`);
}

const containerResources = ['cpu', 'memory', 'ephemeral-storage'];
const standardResources = [
  ...containerResources,
  'storage',
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'requests.cpu',
  'requests.memory',
  'requests.ephemeral-storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
];

function checkResourceName(report: Report, path: FieldPath, name: string, level: Level): void {
  const told = qualifiedName(name);
  const isPlain = !name.includes('/');
  for (const why of told) wrong(report, path, name, why);
  const isUnknown = told.length === 0 && isPlain && !standardResources.includes(name) && !isHugePages(name);
  if (isUnknown) wrong(report, path, name, 'must be a standard resource type or fully qualified');
  if (level === 'pod') {
    if (told.length === 0 && !isUnknown && !isPodLevelResource(name))
      unsupported(report, path, name, ['cpu', 'hugepages-', 'memory']);
  } else if (isPlain) {
    if (!containerResources.includes(name) && !isHugePages(name))
      wrong(report, path, name, 'must be a standard resource for containers');
  } else if (!isNative(name) && !isExtended(name))
    wrong(report, path, name, "doesn't follow extended resource name standard");
}

/** Whether a resource name has no domain, or a domain of Kubernetes. */
function isNative(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/');
}

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.') && qualifiedName(`requests.${name}`).length === 0;
}

/** Devices and huge pages cannot be overcommitted, so their requests must equal their limits. */
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
  const tell = named(report, path.child('requests'));
  const limit = limits[name];
  if (limit === undefined) {
    if (!isOvercommitAllowed(name))
      missing(
        named(report, path.child('limits')),
        path.child('limits').key(name),
        'Limit must be set for non overcommitable resources',
      );
    return;
  }
  const order = compareQuantities(parseQuantity(amount), parseQuantity(limit));
  if (order !== 0 && !isOvercommitAllowed(name))
    wrong(tell, at, amount, `must be equal to ${name} limit of ${limit}`);
  else if (order > 0) wrong(tell, at, amount, `must be less than or equal to ${name} limit of ${limit}`);
}

/**
 * The maximum number of names that one message lists, because a pod may have many invalid fields
 * and each of their messages contains the list.
 */
const mostShownNames = 50;

function shownNames(names: ReadonlySet<string>): string {
  const sorted = [...names].toSorted();
  const more = sorted.length - mostShownNames;
  return [...sorted.slice(0, mostShownNames), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

function checkClaims(
  report: Report,
  path: FieldPath,
  claims: readonly ResourceClaim[],
  known: ReadonlySet<string>,
): void {
  const used = new Set<string>();
  const withRequest = new Set<string>();
  const which = known.size === 0 ? ' which is empty' : `: ${shownNames(known)}`;
  claims.forEach(({ name, request }, index) => {
    const at = path.index(index);
    if (!name) {
      missing(named(report, at), at.child('name'));
      return;
    }
    if (!used.has(name)) checkText(report, at.child('request'), request, dnsLabel);
    const key = request && !used.has(name) ? `${name}/${request}` : name;
    const overlaps = used.has(key) || (!request && withRequest.has(name));
    if (overlaps) repeated(report, at, key);
    used.add(key);
    if (key !== name) withRequest.add(name);
    if (!known.has(name))
      notThere(
        named(report, at),
        at.child('name'),
        name,
        `must be one of the names in pod.spec.resourceClaims${which}`,
      );
  });
}

/** Pod-level resources must be at least the sum of the containers. */
export function checkPodResources(report: Report, spec: PodSpec, path: FieldPath): void {
  const { resources } = spec;
  const at = path.child('resources');
  if (resources === undefined) return;
  if (spec.os?.name === 'windows') {
    refuse(report, at, 'may not be set for a windows pod');
    return;
  }
  if (resources.claims !== undefined)
    refuse(report, at.child('claims'), 'claims may not be set for Resources at pod-level');
  checkResources(report, at, { ...resources, claims: [] }, { level: 'pod', claims: new Set() });
  for (const [name, needed] of aggregateContainers(spec, 'requests'))
    checkEnough(report, at.child('requests').key(name), resources.requests?.[name], {
      needed,
      of: 'requests',
    });
  for (const [name, needed] of aggregateContainers(spec, 'limits'))
    if (isHugePages(name))
      checkEnough(report, at.child('limits').key(name), resources.limits?.[name], { needed, of: 'limits' });
  checkContainerLimits(report, spec, path);
}

function checkEnough(
  report: Report,
  path: FieldPath,
  given: string | undefined,
  { needed, of }: { readonly needed: Quantity; readonly of: 'requests' | 'limits' },
): void {
  if (given === undefined || compareQuantities(needed, parseQuantity(given)) <= 0) return;
  const least = `aggregate container ${of} of ${formatQuantity(needed)}`;
  wrong(report, path, given, `must be greater than or equal to ${least}`);
}

function checkContainerLimits(report: Report, spec: PodSpec, path: FieldPath): void {
  spec.containers.forEach((container, index) => {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const whole = spec.resources?.limits?.[name];
      if (whole !== undefined && compareQuantities(parseQuantity(limit), parseQuantity(whole)) > 0)
        wrong(
          named(report, path.child('resources', 'containers').index(index).key(name).child('limits')),
          path.child('containers').index(index).child('resources', 'limits').key(name),
          limit,
          `must be less than or equal to pod limits of ${whole}`,
        );
    }
  });
}
