package gatehousegin

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/apierror"
)

var (
	notFound         = apierror.New(http.StatusNotFound, "not_found", "There is nothing at this path.")
	methodNotAllowed = apierror.New(http.StatusMethodNotAllowed, "method_not_allowed",
		"This method is not supported here. The Allow header lists the methods that are.")
)

// SetErrors makes Gin answer in the envelope what it would answer itself in plain text. If no
// route matches the path, that is 404 not_found. If routes match the path but not the method,
// it is 405 method_not_allowed with Allow; Gin's default is 404. It sets
// HandleMethodNotAllowed, NoRoute and NoMethod. A nil Responder works.
//
// Gin answers /pets/ with a redirect to /pets, and the other way round, before it calls any
// handler. Such a request is neither counted nor logged, unless RedirectTrailingSlash is turned
// off.
func SetErrors(engine *gin.Engine, rs *apierror.Responder) {
	engine.HandleMethodNotAllowed = true
	answer := func(e *apierror.Error) gin.HandlerFunc {
		return func(c *gin.Context) {
			rs.Respond(c.Writer, c.Request, e)
			c.Writer.WriteHeaderNow() // otherwise Gin would change the type of a response to HEAD
		}
	}
	engine.NoRoute(answer(notFound))
	engine.NoMethod(answer(methodNotAllowed))
}

// ErrorHandler returns a handler for Use that answers errors in the envelope. It answers the
// last error that handlers after it have added with c.Error, if they have written nothing. An
// [apierror.Error] is sent as it is. Any other error is logged and answered with 500 internal,
// without its text. A nil Responder works.
//
// c.AbortWithError, c.Bind and c.BindJSON send a response without a body immediately. Handlers
// that call c.Error and c.ShouldBindJSON leave it to ErrorHandler. Place it directly after
// the Wrap of Recover and of the limit, so that these see its status.
func ErrorHandler(rs *apierror.Responder) gin.HandlerFunc {
	return func(c *gin.Context) {
		before := len(c.Errors) // errors of handlers around it
		c.Next()
		if len(c.Errors) > before && !c.Writer.Written() {
			rs.Respond(c.Writer, c.Request, c.Errors.Last().Err)
		}
	}
}
