import { FieldPath, type KindTable, type PodSpec, type Pod as WrittenPod } from '../../kinds/index.ts';
import type { FieldProblem, PodRules } from '../rules.ts';
import { checkSpecialAnnotations } from './annotations.ts';
import {
  type ContainerContext,
  checkContainers,
  checkEphemeralContainers,
  checkInitContainers,
} from './containers.ts';
import { checkMetadata } from './metadata.ts';
import { dnsLabel, dnsSubdomain } from './names.ts';
import { checkNetwork } from './network.ts';
import {
  checkChoice,
  checkName,
  checkRange,
  checkText,
  missing,
  type Report,
  refuse,
  repeated,
  wrong,
} from './report.ts';
import { checkOverhead, checkPodResources } from './resources.ts';
import { checkScheduling } from './scheduling.ts';
import { checkPodSecurity, checkUserNamespace } from './security.ts';
import { checkVolumes } from './volumes.ts';
import { checkHostProcess, checkSystem } from './windows.ts';

const metadataPath = FieldPath.root.child('metadata');
const specPath = FieldPath.root.child('spec');

/** Everything an API server would refuse a new pod for. The pod must have its defaults, node and namespace already. */
export function validatePod(
  pod: WrittenPod & { readonly spec: PodSpec },
  rules: PodRules,
  table: KindTable,
): readonly FieldProblem[] {
  const problems: FieldProblem[] = [];
  const report: Report = (field, message) => {
    problems.push({ field, message });
  };
  const { metadata = {}, spec } = pod;
  const context = { spec, table, enabled: rules.enabled };
  checkMetadata(report, metadataPath, metadata);
  checkSpecialAnnotations(report, metadataPath.child('annotations'), metadata.annotations ?? {}, context);
  checkSpec(report, spec, metadata.name ?? '', rules);
  return problems;
}

function checkSpec(report: Report, spec: PodSpec, podName: string, { enabled }: PodRules): void {
  const context: ContainerContext = {
    spec,
    enabled,
    volumes: checkVolumes(report, specPath.child('volumes'), spec, podName),
    graceSeconds: spec.terminationGracePeriodSeconds,
    os: spec.os?.name ?? '',
  };
  checkContainers(report, specPath, context);
  checkInitContainers(report, specPath, context);
  checkEphemeralContainers(report, specPath, context);
  if ((spec.ephemeralContainers ?? []).length > 0)
    refuse(report, specPath.child('ephemeralContainers'), 'on a new pod');
  checkFileKeyVolumes(report, spec);
  if (enabled('PodLevelResources')) checkPodResources(report, spec, specPath);
  checkOverhead(report, specPath.child('overhead'), spec.overhead);
  checkResourceClaims(report, spec);
  checkWhole(report, spec);
  checkNetwork(report, specPath, spec);
  checkPodSecurity(report, spec, specPath);
  const network = enabled('UserNamespacesHostNetworkSupport') ? 'allowed' : 'refused';
  checkUserNamespace(report, spec, specPath, network);
  checkScheduling(report, specPath, spec, enabled);
  checkHostProcess(report, spec, specPath);
  checkSystem(report, spec, specPath);
  checkTokens(report, spec);
}

const longestDeadline = 2 ** 31 - 1;

function checkWhole(report: Report, spec: PodSpec): void {
  const of = ['Always', 'OnFailure', 'Never'];
  checkChoice(report, specPath.child('restartPolicy'), spec.restartPolicy, { of, absent: 'refused' });
  if (spec.terminationGracePeriodSeconds === undefined)
    missing(report, specPath.child('terminationGracePeriodSeconds'));
  const deadline = specPath.child('activeDeadlineSeconds');
  checkRange(report, deadline, spec.activeDeadlineSeconds, [1, longestDeadline]);
  checkText(report, specPath.child('serviceAccountName'), spec.serviceAccountName, dnsSubdomain);
  if (spec.runtimeClassName !== undefined)
    checkName(report, specPath.child('runtimeClassName'), spec.runtimeClassName, dnsSubdomain);
}

/** Variables out of files are read from directories of the pod's own. */
function checkFileKeyVolumes(report: Report, spec: PodSpec): void {
  const volumes = new Map(spec.volumes?.map((volume) => [volume.name, volume]));
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      container.env?.forEach((variable, position) => {
        const name = variable.valueFrom?.fileKeyRef?.volumeName;
        if (!name || volumes.get(name)?.emptyDir !== undefined) return;
        const at = specPath.child(list).index(index).child('env').index(position);
        wrong(
          report,
          at.child('valueFrom', 'fileKeyRef', 'volumeName'),
          name,
          'name an emptyDir volume of the pod',
        );
      });
    });
}

function checkResourceClaims(report: Report, spec: PodSpec): void {
  const names = new Set<string>();
  spec.resourceClaims?.forEach((claim, index) => {
    const at = specPath.child('resourceClaims').index(index);
    const { name, resourceClaimName, resourceClaimTemplateName } = claim;
    checkName(report, at.child('name'), name, dnsLabel);
    if (name && names.has(name)) repeated(report, at.child('name'), name);
    names.add(name);
    if ((resourceClaimName === undefined) === (resourceClaimTemplateName === undefined))
      report(at, 'must have either resourceClaimName or resourceClaimTemplateName');
    checkText(report, at.child('resourceClaimName'), resourceClaimName, dnsSubdomain);
    checkText(report, at.child('resourceClaimTemplateName'), resourceClaimTemplateName, dnsSubdomain);
  });
}

/** A token is one of a service account. */
function checkTokens(report: Report, spec: PodSpec): void {
  if (spec.serviceAccountName) return;
  spec.volumes?.forEach((volume, index) => {
    volume.projected?.sources.forEach((source, position) => {
      const at = specPath.child('volumes').index(index).child('projected', 'sources').index(position);
      if (source.serviceAccountToken !== undefined)
        refuse(report, at.child('serviceAccountToken'), 'without a serviceAccountName');
    });
  });
}
