/** Descriptions of containers, probes and container statuses. */
export const containerDescriptions = `
Container: One program that runs in a pod, in an image of its own.
 name: What the container is called; no other one of the pod is called so.
 image: The image the container is made from.
 command: What is run instead of the entry point of the image. $(NAME) stands for a variable of the container.
 args: What is given to the command instead of what the image gives it. $(NAME) stands for a variable of the container.
 workingDir: The folder the command starts in, instead of that of the image.
 ports: Ports the container listens on. Leaving one out closes nothing: the list is for people, names and hostPort.
 envFrom: ConfigMaps, Secrets and the like whose entries become variables.
 env: Variables the command is given.
 resources: The resource requests and limits of the container.
 resizePolicy: Whether a change of resources needs a new start, for each resource.
 restartPolicy: When the container is started again, if that differs from the pod; Always makes an init container a sidecar.
 restartPolicyRules: When the container is started again, by how it ended.
 volumeMounts: Volumes of the pod, and where they are found in the container.
 volumeDevices: Volumes of the pod that are bare devices, and where they are found in the container.
 livenessProbe: Checks whether the container is alive; it is restarted when the probe fails.
 readinessProbe: Checks whether the container is ready for traffic.
 startupProbe: Checks whether the container has started; other probes wait for it.
 lifecycle: Handlers that run after the start and before the termination.
 terminationMessagePath: The file to which the container may write a termination message.
 terminationMessagePolicy: Whether the end of the log is used when there is no termination message.
 imagePullPolicy: Whether the image is fetched each time, only if it is missing, or never.
 securityContext: The user, group and privileges with which the container runs; what the pod says counts where this says nothing.
 stdin: Whether the container has an input that one may attach to.
 stdinOnce: Whether that input ends when the first one who attached leaves.
 tty: Whether the container has a terminal.
EphemeralContainer like Container: A container added to a running pod for debugging. It is never restarted or removed.
 targetContainerName: The container whose processes it sees.
ContainerPort: A port of a container.
 name: What services and probes may call the port.
 hostPort: A port of the node that leads to it.
 containerPort: Its number.
 protocol: TCP, UDP or SCTP.
 hostIP: The address of the node that hostPort is bound to.
EnvVar: A variable of a container.
 name: Its name.
 value: Its value. $(NAME) stands for a variable before it.
 valueFrom: Where its value comes from, if it is not given here.
EnvVarSource: Where the value of a variable comes from; only one of these is given.
 fieldRef: A field of the pod.
 resourceFieldRef: A resource request or limit of a container.
 configMapKeyRef: An entry of a ConfigMap.
 secretKeyRef: An entry of a Secret.
 fileKeyRef: A line of a file in a volume.
EnvFromSource: Something whose entries become variables.
 prefix: What is put before each name.
 configMapRef: A ConfigMap.
 secretRef: A Secret.
ConfigMapEnvSource: A ConfigMap whose entries become variables.
 name: The name of the ConfigMap.
 optional: Whether it may be missing.
SecretEnvSource: A Secret whose entries become variables.
 name: The name of the Secret.
 optional: Whether it may be missing.
ConfigMapKeySelector: An entry of a ConfigMap.
 name: The name of the ConfigMap.
 key: The name of the entry.
 optional: Whether either may be missing.
SecretKeySelector: An entry of a Secret.
 name: The name of the Secret.
 key: The name of the entry.
 optional: Whether either may be missing.
FileKeySelector: A line of a file in a volume.
 volumeName: The volume.
 path: The file in it.
 key: The name before the equals sign of the line.
 optional: Whether it may be missing.
ObjectFieldSelector: A field of the pod.
 apiVersion: The version the field is named in.
 fieldPath: The field, such as metadata.name.
ResourceFieldSelector: A resource request or limit of a container.
 containerName: The container, if it is not the one that asks.
 resource: What is asked for, such as limits.cpu.
 divisor: The unit it is told in.
ResourceRequirements: The resource requests and limits of a container.
 limits: The maximum amounts of resources.
 requests: The guaranteed amounts of resources; the limits by default.
 claims: Claims of devices of the pod that it uses.
ResourceClaim: A claim of devices that a container uses.
 name: The name it has in the pod.
 request: The part of the claim that is meant; all of it by default.
ContainerResizePolicy: Whether a change of a resource needs a new start.
 resourceName: The resource.
 restartPolicy: NotRequired or RestartContainer.
ContainerRestartRule: What is done when a container ended in some way.
 action: What is done.
 exitCodes: How it ended.
ContainerRestartRuleOnExitCodes: Some exit codes.
 operator: Whether it is one of them, or none of them.
 values: The codes.
VolumeMount: Where a volume is found in a container.
 name: The name of the volume in the pod.
 mountPath: The path in the container.
 readOnly: Whether the container may only read it.
 recursiveReadOnly: Whether that also holds for what is mounted below it.
 subPath: A path in the volume that is mounted instead of its root.
 subPathExpr: Such a path with variables of the container in it, as $(NAME).
 mountPropagation: Whether mounts made later are seen by the container, or by the node.
VolumeDevice: Where a bare device is found in a container.
 name: The name of the volume in the pod.
 devicePath: The path in the container.
Probe: A periodic check of a container.
 exec: Runs a command in the container; exit code 0 is a success.
 httpGet: Sends an HTTP request; a status from 200 to 399 is a success.
 tcpSocket: Opens a TCP connection; a connection is a success.
 grpc: Calls the gRPC health checking service.
 initialDelaySeconds: The delay of the first probe after the start.
 timeoutSeconds: The timeout of a probe; 1 by default.
 periodSeconds: The interval of probes; 10 by default.
 successThreshold: The number of consecutive successes after a failure; 1 by default.
 failureThreshold: The number of consecutive failures until the probe has failed; 3 by default.
 terminationGracePeriodSeconds: How long the container has to end when the probe ended it, instead of what the pod says.
ExecAction: A command to be run in a container.
 command: The command and what it is given. No shell is around it.
HTTPGetAction: A question over HTTP.
 path: The path asked for.
 port: The port, by number or name.
 host: The host connected to; the pod by default.
 scheme: HTTP or HTTPS.
 httpHeaders: Headers of the request.
HTTPHeader: A header of a request.
 name: Its name.
 value: Its value.
TCPSocketAction: A connection to a port.
 port: The port, by number or name.
 host: The host connected to; the pod by default.
GRPCAction: A question over gRPC.
 port: The port.
 service: The service whose health is asked for.
SleepAction: A wait.
 seconds: How long it is.
Lifecycle: What is done around the life of a container.
 postStart: What is done right after the start; the container ends if that fails.
 preStop: What is done before the container is asked to end.
 stopSignal: The signal that asks the container to end, instead of that of the image.
LifecycleHandler: Something to be done; only one of these is given.
 exec: Runs a command in the container.
 httpGet: Sends an HTTP request.
 tcpSocket: No longer used.
 sleep: Waits.
SecurityContext: The user, group and privileges with which a container runs.
 capabilities: Rights that are added to those of the container runtime, or taken from them.
 privileged: Whether the container may do what root on the node may.
 seLinuxOptions: The SELinux label of the container.
 windowsOptions: What only matters on Windows.
 runAsUser: The number of the user it runs as.
 runAsGroup: The number of the group it runs as.
 runAsNonRoot: Whether it is refused when it would run as root.
 readOnlyRootFilesystem: Whether it may write only to volumes.
 allowPrivilegeEscalation: Whether a process may get more rights than its parent has.
 procMount: How much of /proc it sees.
 seccompProfile: Which system calls it may use.
 appArmorProfile: Its AppArmor profile.
Capabilities: Rights beyond or below the usual ones.
 add: Those that are added.
 drop: Those that are taken.
SELinuxOptions: A label of SELinux.
 user: Its user part.
 role: Its role part.
 type: Its type part.
 level: Its level part.
SeccompProfile: Which system calls may be used.
 type: Which sort of profile is used.
 localhostProfile: The file on the node, for Localhost.
AppArmorProfile: A profile of AppArmor.
 type: Which sort of profile is used.
 localhostProfile: The profile loaded on the node, for Localhost.
ContainerStatus: The observed state of a container.
 name: The name of the container.
 state: What it is doing.
 lastState: How it ended the last time.
 ready: Whether it takes traffic.
 restartCount: How often it was started again.
 image: The image it runs, by name.
 imageID: The image it runs, by its content.
 containerID: Its ID in the container runtime.
 started: Whether its startup probe has passed.
 allocatedResources: The resources allocated to the container.
 resources: What it is given now.
 volumeMounts: How its volumes are mounted.
 user: The user of its first process.
 allocatedResourcesStatus: How its devices are.
 stopSignal: The signal that asks it to end.
ContainerState: What a container is doing; only one of these is given.
 waiting: It has not started.
 running: It runs.
 terminated: It has ended.
ContainerStateWaiting: A container that has not started.
 reason: The reason in one machine-readable word.
 message: A human-readable explanation.
ContainerStateRunning: A container that runs.
 startedAt: Since when.
ContainerStateTerminated: A container that has ended.
 exitCode: The number it ended with.
 signal: The signal it ended by.
 reason: The reason in one machine-readable word.
 message: The termination message, or a human-readable explanation.
 startedAt: When it started.
 finishedAt: When it ended.
 containerID: Its ID in the container runtime.
`;
