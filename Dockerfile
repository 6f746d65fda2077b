# syntax=docker/dockerfile:1

# The pets server: one static binary, and the certificates of public authorities for TLS
# to PostgreSQL and Redis. reference/docs/DEPLOYING.md says how to build and run it.

ARG GO_VERSION=1.26.8

# The compiler runs on the platform of the builder, for any other.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=devel REVISION DATE
# Without go.work, so that modules which are not in the build context are not missed.
ENV GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    build=github.com/animalstore/gatehouse/reference/internal/build; \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -C reference -o /out/petstore -trimpath -buildvcs=false \
    -ldflags "-s -w -X $build.version=$VERSION -X $build.revision=$REVISION -X $build.date=$DATE" .
RUN --mount=type=cache,target=/go/pkg/mod reference/licences.sh /out/LICENCES.txt
RUN mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/petstore /usr/local/bin/petstore
COPY --from=build /src/LICENSE /out/LICENCES.txt /usr/share/doc/petstore/
# The folder of the SQLite file, and of usage without Redis. A server with PostgreSQL and
# Redis writes nothing.
COPY --from=build --chown=65532:65532 /out/data /var/lib/petstore
VOLUME /var/lib/petstore
WORKDIR /var/lib/petstore
USER 65532:65532
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
# It asks whether the process answers, because a restart repairs nothing else.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/petstore", "health"]
ENTRYPOINT ["/usr/local/bin/petstore"]
CMD ["serve"]

ARG VERSION=devel REVISION DATE
LABEL org.opencontainers.image.title="petstore" \
      org.opencontainers.image.description="The pets API, with API keys, plans and rate limits" \
      org.opencontainers.image.source="https://github.com/animalstore/gatehouse" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$DATE"
